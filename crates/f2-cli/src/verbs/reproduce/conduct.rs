//! Runs the tasks of an experiment: builds the arguments of each verb and calls it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use f2_experiment::{Conductor, Moment, Task};
use indicatif::HumanDuration;

use crate::failure::{Failure, Kind, Outcome};
use crate::verbs::classes::Classes;
use crate::verbs::device::DeviceChoice;
use crate::verbs::eval::Eval;
use crate::verbs::generate::Generate;
use crate::verbs::perplexity::Perplexity;
use crate::verbs::prepare::Prepare;
use crate::verbs::train::Train;
use crate::{interrupt, output};

/// Runs tasks, one on each device at a time, and announces each.
pub(super) struct Runner {
    devices: Vec<DeviceChoice>,
    /// The folder that the user named.
    out: PathBuf,
    /// The corpus that is worked on, if there are several.
    corpus: Option<String>,
    /// Estimated seconds of the corpora after this one.
    seconds_after: f64,
    /// The stages that were begun.
    begun: Mutex<Vec<String>>,
}

impl Runner {
    pub(super) fn new(devices: &[DeviceChoice], out: &Path) -> Self {
        Self {
            devices: devices.iter().map(|device| device.settled()).collect(),
            out: out.to_path_buf(),
            corpus: None,
            seconds_after: 0.0,
            begun: Mutex::default(),
        }
    }

    /// Names the corpus that is worked on, and the time that others will take after it.
    pub(super) fn on(mut self, corpus: Option<&str>, seconds_after: f64) -> Self {
        self.corpus = corpus.map(str::to_owned);
        self.seconds_after = seconds_after;
        self
    }

    fn stopped(&self) -> Failure {
        Failure::new(Kind::Interrupted, "stopped; finished stages are kept").advise(format!(
            "continue with the same command and the same `--out {}`",
            self.out.display()
        ))
    }
}

impl Conductor for Runner {
    type Failure = Failure;

    fn workers(&self) -> usize {
        self.devices.len()
    }

    fn announce(&self, moment: &Moment<'_>) {
        let Moment { place, of, stage, worker, done, seconds_left } = moment;
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.iter().any(|begun| begun == stage) {
            return;
        }
        let corpus = self.corpus.as_ref().map_or_else(String::new, |name| format!("{name}, "));
        if *done {
            remark!("[{corpus}{place}/{of}] {stage}: done before");
            return;
        }
        begun.push((*stage).to_owned());
        let seconds = (seconds_left + self.seconds_after).clamp(1.0, 1e9);
        let left = HumanDuration(Duration::from_secs_f64(seconds));
        let device = match self.devices.as_slice() {
            [_] => String::new(),
            several => format!(" by {}", several[*worker].name()),
        };
        remark!("\n[{corpus}{place}/{of}] {stage}{device}; about {left} left for everything");
    }

    fn run(&self, worker: usize, stage: &str, task: &Task<PathBuf>) -> Outcome {
        if interrupt::asked() {
            return Err(self.stopped());
        }
        let device = self.devices[worker];
        let work = || {
            let words = task.map(|path| OsString::from(path)).command(&device.flags());
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            remark!("$ f2 {}", words.join(" "));
            run(task, device)
        };
        let done = if self.devices.len() > 1 { output::labelled(stage, work) } else { work() };
        match done {
            Err(failure) if failure.is_interruption() => Err(self.stopped()),
            Err(failure) if self.devices.len() > 1 => {
                remark!("{stage} failed; running stages will finish");
                Err(failure.before(&format!("{stage}: ")))
            }
            other => other,
        }
    }
}

/// Runs a task. Results that its verb would print are written to the file of the task.
fn run(task: &Task<PathBuf>, device: DeviceChoice) -> Outcome {
    match task {
        Task::Prepare(task) => Prepare::of_task(task, device.only_threads())?.prepare().map(drop),
        Task::Classes(task) => Classes::of_task(task).save(),
        Task::Train(task) => Train::of_task(task, device).train_to_end(),
        Task::Perplexity(task) => {
            let report = Perplexity::of_task(task, device).compute()?;
            Ok(f2_files::write_text_atomically(&task.out, &report.to_json())?)
        }
        Task::Generate(task) => Generate::of_task(task, device).run(),
        Task::Score(task) => {
            let (records, _) = Eval::of_task(task).score()?;
            let json = serde_json::to_string_pretty(&records).expect("results have a JSON form");
            Ok(f2_files::write_text_atomically(&task.out, &(json + "\n"))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use clap::Parser as _;
    use f2_experiment::{
        Corpora, CorpusSource, Place, Plan, PlanPreset, Stages, TestTokens, stages,
    };

    use super::*;
    use crate::verbs::{Program, Verb};

    /// The arguments of a task, printed.
    fn request(task: &Task<PathBuf>, device: DeviceChoice) -> String {
        fn words(request: &impl Debug) -> String {
            format!("{request:?}")
        }
        match task {
            Task::Prepare(task) => words(&Prepare::of_task(task, device.only_threads()).unwrap()),
            Task::Classes(task) => words(&Classes::of_task(task)),
            Task::Train(task) => words(&Train::of_task(task, device)),
            Task::Perplexity(task) => words(&Perplexity::of_task(task, device)),
            Task::Generate(task) => words(&Generate::of_task(task, device)),
            Task::Score(task) => words(&Eval::of_task(task)),
        }
    }

    /// The arguments that the shown command is parsed into, printed.
    fn parsed(command: &[OsString]) -> String {
        let typed = command.iter().take_while(|word| *word != ">");
        let words = std::iter::once(OsString::from("f2")).chain(typed.cloned());
        match Program::try_parse_from(words).unwrap().verb {
            Verb::Prepare(verb) => format!("{verb:?}"),
            Verb::Classes(verb) => format!("{verb:?}"),
            Verb::Train(verb) => format!("{verb:?}"),
            Verb::Perplexity(verb) => format!("{verb:?}"),
            Verb::Generate(verb) => format!("{verb:?}"),
            Verb::Eval(verb) => format!("{verb:?}"),
            _ => panic!("{command:?} is no task"),
        }
    }

    fn all_stages(plan: &Plan) -> Stages {
        let [main, other] =
            ["novel.txt", "news.txt"].map(|name| CorpusSource::Text(vec![name.into()]));
        let corpora = Corpora { main, pretraining: Some(other) };
        stages(plan, &corpora, TestTokens { main: Some(99_999), target: None })
    }

    #[test]
    fn the_command_that_is_shown_is_the_request_that_is_run() {
        let device = Program::try_parse_from(["f2", "reproduce", "x", "--out", "y"]).unwrap();
        let Verb::Reproduce(verb) = device.verb else { panic!("it is f2 reproduce") };
        let device = verb.device.settled();
        for preset in PlanPreset::ALL {
            let mut plan = Plan { seeds: 2, ..preset.plan() };
            plan.documents = Some("lines".to_owned());
            for stage in all_stages(&plan).0 {
                let mut task = stage.task.map(|place| match place {
                    Place::Outside(path) => path.clone(),
                    Place::Made { stage, name } => PathBuf::from(format!("{stage}/{name}")),
                    Place::Own(name) => PathBuf::from(name),
                });
                for resume in [false, true] {
                    if let Task::Train(training) = &mut task {
                        training.resume = resume;
                    }
                    let command = task.map(|path| OsString::from(path)).command(&device.flags());
                    assert_eq!(parsed(&command), request(&task, device), "{}", stage.name);
                }
            }
        }
    }
}
