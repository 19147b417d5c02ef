//! Runs the stages that are needed and not done yet.

use std::path::PathBuf;
use std::time::Instant;

use crate::{Error, Estimate, Key, Stage, Stages, Store, Task};

/// Runs tasks, and is told how far the experiment is.
pub trait Conductor {
    /// The error of a task.
    type Failure: From<Error>;

    /// A stage is about to begin, or was found done.
    fn announce(&mut self, moment: &Moment<'_>);

    /// Runs a task, which leaves its results in its files.
    fn run(&mut self, task: &Task<PathBuf>) -> Result<(), Self::Failure>;
}

/// How far an experiment is.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The stage's place among those to do, from 1.
    pub place: usize,
    /// How many there are.
    pub of: usize,
    /// Its name.
    pub stage: &'a str,
    /// Whether it was done before.
    pub done: bool,
    /// Estimated seconds to the end.
    pub seconds_left: f64,
}

/// Runs the stages that are needed and not done yet, as far as they are to be done `now`. The
/// results of finished stages are kept whatever happens.
pub fn perform<C: Conductor>(
    stages: &Stages,
    needed: &[bool],
    keys: &[Key],
    estimates: &[Estimate],
    store: &Store,
    conductor: &mut C,
    now: impl Fn(&Stage) -> bool,
) -> Result<(), C::Failure> {
    let numbers: Vec<usize> = (0..stages.0.len()).filter(|&number| needed[number]).collect();
    let mut pace = Pace::default();
    let mut left: f64 = numbers
        .iter()
        .filter(|&&number| store.done(&stages.0[number], &keys[number]).is_none())
        .map(|&number| estimates[number].seconds)
        .sum();
    for (place, &number) in (1..).zip(&numbers) {
        let (stage, key) = (&stages.0[number], &keys[number]);
        if !now(stage) {
            continue;
        }
        let done = store.done(stage, key).is_some();
        conductor.announce(&Moment {
            place,
            of: numbers.len(),
            stage: &stage.name,
            done,
            seconds_left: left * pace.factor(),
        });
        if done {
            continue;
        }
        let began = Instant::now();
        conductor.run(&store.begin(number, &stages.0, keys)?)?;
        let seconds = began.elapsed().as_secs_f64();
        store.finish(stage, key, seconds)?;
        left -= estimates[number].seconds;
        pace.add(estimates[number].seconds, seconds);
    }
    Ok(())
}

/// Seconds that stages took beside the seconds expected.
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

    /// The factor that estimates are to be corrected by; 1 until a second's worth is known.
    fn factor(&self) -> f64 {
        if self.expected < 1.0 { 1.0 } else { (self.taken / self.expected).clamp(0.05, 20.0) }
    }
}
