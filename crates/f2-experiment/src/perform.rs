//! Runs the stages that are needed and not completed, one after another or in parallel.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Instant;

use crate::{Error, Estimate, Key, Stage, Stages, Store, Task};

/// Runs tasks, and receives the progress of the experiment.
pub trait Conductor: Sync {
    /// The error of a task.
    type Failure: From<Error> + Send;

    /// The number of workers, which run tasks in parallel and are numbered from 0.
    fn workers(&self) -> usize;

    /// Called when a stage is about to begin, or is found to be completed.
    fn announce(&self, moment: &Moment<'_>);

    /// Runs the task of a stage, which writes its results to files.
    fn run(&self, worker: usize, stage: &str, task: &Task<PathBuf>) -> Result<(), Self::Failure>;
}

/// The progress of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The number of the stage among those needed, from 1.
    pub place: usize,
    /// The number of stages needed.
    pub of: usize,
    /// The stage's name.
    pub stage: &'a str,
    /// The worker that runs it.
    pub worker: usize,
    /// Whether it was completed before.
    pub done: bool,
    /// The estimated remaining time in seconds.
    pub seconds_left: f64,
}

/// Runs the stages that are needed, not completed and selected by `now`. Each worker takes the
/// first stage whose inputs are complete. The results of completed stages are always kept; after a
/// failure, running stages finish and no further ones begin.
pub fn perform<C: Conductor>(
    stages: &Stages,
    needed: &[bool],
    keys: &[Key],
    estimates: &[Estimate],
    store: &Store,
    conductor: &C,
    now: impl Fn(&Stage) -> bool,
) -> Result<(), C::Failure> {
    let numbers: Vec<usize> = (0..stages.0.len()).filter(|&number| needed[number]).collect();
    let is_done = |number: usize| store.done(&stages.0[number], &keys[number]).is_some();
    let undone = numbers.iter().filter(|&&number| !is_done(number));
    let left = undone.map(|&number| estimates[number].seconds).sum();
    let wanted = numbers.iter().enumerate().filter(|(_, number)| now(&stages.0[**number]));
    let waiting = wanted.map(|(place, &number)| (place + 1, number)).collect();
    let workers = conductor.workers().max(1);
    let board = Board { waiting, running: Vec::new(), left, pace: Pace::default(), failure: None };
    let performance = Performance {
        stages,
        keys,
        estimates,
        store,
        conductor,
        of: numbers.len(),
        workers,
        board: Mutex::new(board),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        let performance = &performance;
        // This thread is the first worker.
        for worker in 1..workers {
            let work = move || performance.work(worker);
            if let Err(error) = Builder::new().spawn_scoped(scope, work) {
                performance.fail(Error::from(f2_lm::Error::without_threads(workers, &error)));
            }
        }
        performance.work(0);
    });
    let board = performance.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.failure.map_or(Ok(()), Err)
}

/// An experiment that is being performed.
struct Performance<'a, C: Conductor> {
    stages: &'a Stages,
    keys: &'a [Key],
    estimates: &'a [Estimate],
    store: &'a Store,
    conductor: &'a C,
    /// How many stages are needed.
    of: usize,
    workers: usize,
    board: Mutex<Board<C::Failure>>,
    /// Notified when a stage ends.
    changed: Condvar,
}

/// The state shared by all workers.
struct Board<F> {
    /// Stages that have not started, in order: the number among the needed ones from 1, and the
    /// index.
    waiting: Vec<(usize, usize)>,
    running: Vec<usize>,
    /// Estimated seconds of the stages that are not completed.
    left: f64,
    pace: Pace,
    failure: Option<F>,
}

impl<C: Conductor> Performance<'_, C> {
    /// Runs stages until none is left.
    fn work(&self, worker: usize) {
        while let Some(number) = self.take(worker) {
            let began = Instant::now();
            let panic = OnPanic(self);
            let result = self.run(worker, number, began);
            drop(panic);
            let mut board = self.board();
            board.running.retain(|running| *running != number);
            board.left -= self.estimates[number].seconds;
            match result {
                Ok(()) => {
                    let seconds = began.elapsed().as_secs_f64();
                    board.pace.add(self.estimates[number].seconds, seconds);
                }
                Err(failure) => {
                    board.failure.get_or_insert(failure);
                }
            }
            self.changed.notify_all();
        }
    }

    fn run(&self, worker: usize, number: usize, began: Instant) -> Result<(), C::Failure> {
        let Self { stages, keys, store, conductor, .. } = self;
        let stage = &stages.0[number];
        conductor.run(worker, &stage.name, &store.begin(number, &stages.0, keys)?)?;
        Ok(store.finish(stage, &keys[number], began.elapsed().as_secs_f64())?)
    }

    /// Takes the first stage that is ready, and waits if there is none yet. `None` at the end, or
    /// after a failure.
    fn take(&self, worker: usize) -> Option<usize> {
        let mut board = self.board();
        loop {
            if board.failure.is_some() || board.waiting.is_empty() {
                return None;
            }
            let ready = board.waiting.iter().position(|(_, number)| self.is_ready(*number, &board));
            let Some(index) = ready else {
                board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (place, number) = board.waiting.remove(index);
            let stage = &self.stages.0[number];
            let done = self.store.done(stage, &self.keys[number]).is_some();
            self.conductor.announce(&Moment {
                place,
                of: self.of,
                stage: &stage.name,
                worker,
                done,
                seconds_left: board.left * board.pace.factor() / self.workers as f64,
            });
            if !done {
                board.running.push(number);
                return Some(number);
            }
            // Stages that read it may be ready now.
            self.changed.notify_all();
        }
    }

    /// Whether all inputs of a stage are complete.
    fn is_ready(&self, number: usize, board: &Board<C::Failure>) -> bool {
        let is_open = |read: &usize| {
            board.running.contains(read) || board.waiting.iter().any(|(_, other)| other == read)
        };
        !self.stages.0[number].reads().iter().any(is_open)
    }

    /// Records a failure, so that no further stage begins.
    fn fail(&self, error: Error) {
        self.board().failure.get_or_insert(error.into());
    }

    fn board(&self) -> MutexGuard<'_, Board<C::Failure>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// If a worker panics, lets the others end instead of waiting for it.
struct OnPanic<'a, 'b, C: Conductor>(&'a Performance<'b, C>);

impl<C: Conductor> Drop for OnPanic<'_, '_, C> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.board().waiting.clear();
            self.0.changed.notify_all();
        }
    }
}

/// The actual seconds of stages compared with the expected ones.
#[derive(Default)]
struct Pace {
    expected: f64,
    taken: f64,
}

impl Pace {
    fn add(&mut self, expected: f64, taken: f64) {
        self.expected += expected;
        self.taken += taken;
    }

    /// The correction factor for estimates; 1 until stages of at least one expected second are
    /// completed.
    fn factor(&self) -> f64 {
        if self.expected < 1.0 { 1.0 } else { (self.taken / self.expected).clamp(0.05, 20.0) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::{Corpora, CorpusSource, PlanPreset, TestTokens, stages};

    /// Creates files with the right names, and records the order of stages.
    struct Pretending<'a> {
        stages: &'a Stages,
        keys: &'a [Key],
        store: &'a Store,
        workers: usize,
        /// The stage that fails.
        fails: Option<&'static str>,
        ended: Mutex<Vec<String>>,
    }

    impl Conductor for Pretending<'_> {
        type Failure = Error;

        fn workers(&self) -> usize {
            self.workers
        }

        fn announce(&self, moment: &Moment<'_>) {
            assert!(moment.worker < self.workers && moment.place <= moment.of);
        }

        fn run(&self, _: usize, name: &str, _: &Task<PathBuf>) -> Result<(), Error> {
            let number = self.stages.0.iter().position(|stage| stage.name == name).unwrap();
            let stage = &self.stages.0[number];
            for read in stage.reads() {
                let (read, key) = (&self.stages.0[read], &self.keys[read]);
                assert!(self.store.done(read, key).is_some(), "{name} reads {}", read.name);
            }
            if self.fails == Some(name) {
                return Err(Error::NoText { path: name.into() });
            }
            for made in &stage.makes {
                let path = self.store.folder(stage, &self.keys[number]).join(made);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "made").unwrap();
            }
            self.ended.lock().unwrap().push(name.to_owned());
            Ok(())
        }
    }

    /// Runs itself again in a process that cannot start any thread, as no address space has room
    /// for such a stack.
    #[test]
    fn workers_that_cannot_be_had_are_a_failure() {
        const STACK: [&str; 2] = ["RUST_MIN_STACK", "281474976710656"];
        if std::env::var(STACK[0]).as_deref() != Ok(STACK[1]) {
            let name = "perform::tests::workers_that_cannot_be_had_are_a_failure";
            let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
            let output = tests.args(["--exact", name]).env(STACK[0], STACK[1]).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let store = Store::new(Path::new("never-made"));
        let (stages, keys) = (&Stages(Vec::new()), &[]);
        let (fails, ended) = (None, Mutex::default());
        let conductor = Pretending { stages, keys, store: &store, workers: 3, fails, ended };
        let error = perform(stages, &[], keys, &[], &store, &conductor, |_| true).unwrap_err();
        assert!(error.to_string().starts_with("cannot start 3 threads: "), "{error}");
    }

    #[test]
    fn stages_wait_for_what_they_read_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("novel.txt");
        fs::write(&text, "words").unwrap();
        let main = CorpusSource::Text(vec![text]);
        let plan = PlanPreset::Tiny.plan();
        let all = stages(&plan, &Corpora { main, pretraining: None }, TestTokens::default());
        let keys = all.keys("cpu").unwrap();
        let (needed, estimates) =
            (vec![true; all.0.len()], vec![Estimate { seconds: 1.0, bytes: 1 }; all.0.len()]);
        let perform_with = |store: &Store, workers: usize, fails: Option<&'static str>| {
            let ended = Mutex::default();
            let conductor = Pretending { stages: &all, keys: &keys, store, workers, fails, ended };
            let result = perform(&all, &needed, &keys, &estimates, store, &conductor, |_| true);
            (result, conductor.ended.into_inner().unwrap())
        };
        let names: Vec<&str> = all.0.iter().map(|stage| stage.name.as_str()).collect();
        for workers in [1, 3, 50] {
            let store = Store::new(&folder.path().join(format!("{workers}")));
            let (result, mut ended) = perform_with(&store, workers, None);
            result.unwrap();
            if workers == 1 {
                assert_eq!(ended, names, "one worker follows the plan");
            }
            ended.sort_unstable();
            let mut expected = names.clone();
            expected.sort_unstable();
            assert_eq!(ended, expected);
            assert!(perform_with(&store, workers, None).1.is_empty(), "everything is done");
        }
        // Stages that depend on the failed one do not run; others may.
        let store = Store::new(&folder.path().join("failing"));
        let (result, ended) = perform_with(&store, 3, Some("train-mle"));
        assert!(matches!(result, Err(Error::NoText { .. })));
        assert!(!ended.iter().any(|name| name.contains("-mle")), "{ended:?}");
        let (result, rest) = perform_with(&store, 2, None);
        result.unwrap();
        assert_eq!(rest.len() + ended.len(), names.len());
    }
}
