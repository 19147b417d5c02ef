use std::ffi::OsString;
use std::time::Instant;

use crate::{Error, Estimate, Key, Stage, Stages, Store};

/// Who runs the commands and is told how far the experiment is.
pub trait Conductor {
    /// What a command fails with.
    type Failure: From<Error>;

    /// A stage is about to begin, or was found done.
    fn announce(&mut self, moment: &Moment<'_>);

    /// Runs a command of `f2`, the verb first; returns what it printed.
    fn run(&mut self, command: &[OsString]) -> Result<String, Self::Failure>;
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

/// Does the stages that are needed and not done yet, as far as they are to be done `now`. What is
/// done stays done, whatever happens.
pub fn perform<C: Conductor>(
    stages: &Stages,
    needed: &[bool],
    keys: &[Key],
    estimates: &[Estimate],
    store: &Store,
    conductor: &mut C,
    now: impl Fn(&Stage) -> bool,
) -> Result<(), C::Failure> {
    let places: Vec<usize> = (0..stages.0.len()).filter(|&place| needed[place]).collect();
    let mut pace = Pace::default();
    let mut left: f64 = places
        .iter()
        .filter(|&&place| store.done(&stages.0[place], &keys[place]).is_none())
        .map(|&place| estimates[place].seconds)
        .sum();
    for (number, &place) in places.iter().enumerate() {
        let (stage, key) = (&stages.0[place], &keys[place]);
        if !now(stage) {
            continue;
        }
        let done = store.done(stage, key).is_some();
        conductor.announce(&Moment {
            place: number + 1,
            of: places.len(),
            stage: &stage.name,
            done,
            seconds_left: left * pace.factor(),
        });
        if done {
            continue;
        }
        let began = Instant::now();
        let words = store.begin(stage, key)?;
        let output = conductor.run(&store.command(words, place, &stages.0, keys))?;
        let seconds = began.elapsed().as_secs_f64();
        store.finish(stage, key, &output, seconds)?;
        left -= estimates[place].seconds;
        pace.add(estimates[place].seconds, seconds);
    }
    Ok(())
}

/// How long stages took beside what was expected.
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

    /// What estimates have to be multiplied by; 1 until a second's worth is known.
    fn factor(&self) -> f64 {
        if self.expected < 1.0 { 1.0 } else { (self.taken / self.expected).clamp(0.05, 20.0) }
    }
}
