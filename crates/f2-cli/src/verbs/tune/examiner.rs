//! Generates texts with a setting and measures them, for the search.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use f2_engine::Device;
use f2_experiment::tune::{Judge, Judged, Size};
use f2_lm::decode::{Continuation, DecodingKeys, Event, Generator, Request, Strategy, TestSet};
use f2_metrics::{Convention, HumanScale};

use super::record::{Nearness, Record, Trial};
use super::sets::Sets;
use super::test::Test;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, Unit};
use crate::verbs::generate::protocol::spread;

/// The limit of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    Seconds(f64),
    Trials(usize),
}

/// A part of the texts is a quarter, but at least enough to tell settings apart.
const PART: usize = 4;
const SMALLEST_PART: usize = 64;

/// Prefixes and references, and the scale that the references set.
struct Measure {
    set: TestSet,
    scale: HumanScale,
}

impl Measure {
    fn new(set: TestSet, seed: u64) -> Result<Self, Failure> {
        let scale =
            HumanScale::new(&set.references, Convention::Paper, seed).map_err(Failure::data)?;
        let scale = scale.ok_or_else(|| Failure::data("there are fewer than four texts"))?;
        Ok(Self { set, scale })
    }
}

/// Generates texts with settings and measures them.
pub(super) struct Examiner<'a, D: Device> {
    pub(super) generator: &'a Generator<'a, D>,
    sets: &'a Sets,
    whole: Measure,
    part: Measure,
    record: Record,
    path: &'a Path,
    budget: Budget,
    batch: Option<usize>,
    seed: u64,
    /// The trials this search has requested, from the record or new.
    asked: HashSet<usize>,
    spent: f64,
    progress: Progress,
}

impl<'a, D: Device> Examiner<'a, D> {
    pub(super) fn new(
        generator: &'a Generator<'a, D>,
        sets: &'a Sets,
        mut record: Record,
        path: &'a Path,
        budget: Budget,
        batch: Option<NonZeroUsize>,
    ) -> Result<Self, Failure> {
        let seed = record.conditions.seed();
        let TestSet { prefixes, references } = &sets.valid;
        let texts = (prefixes.len() / PART).max(SMALLEST_PART);
        let [prefixes, references] = [prefixes, references].map(|all| spread(all.clone(), texts));
        let part = Measure::new(TestSet { prefixes, references }, seed)?;
        let whole = Measure::new(sets.valid.clone(), seed)?;
        record.target = whole.scale.target().clone();
        record.spread = whole.scale.spread().clone();
        let total = match budget {
            Budget::Trials(most) => most as u64,
            Budget::Seconds(seconds) => seconds.ceil() as u64,
        };
        let unit = match budget {
            Budget::Trials(_) => Unit::Settings,
            Budget::Seconds(_) => Unit::Seconds,
        };
        let progress = Progress::new("tuning", Some(total), unit);
        let batch = batch.map(NonZeroUsize::get);
        Ok(Self {
            generator,
            sets,
            whole,
            part,
            record,
            path,
            budget,
            batch,
            seed,
            asked: HashSet::new(),
            spent: 0.0,
            progress,
        })
    }

    /// The texts of a setting; `None` if it was stopped.
    pub(super) fn write(
        &self,
        strategy: &Strategy,
        prompts: &[Vec<u32>],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<u32>>>, Failure> {
        let request = Request {
            prompts,
            samples: 1,
            new_tokens: self.sets.new_tokens,
            strategy,
            seed: self.seed,
            end: None,
            stops: None,
            earlier: &[],
            batch: self.batch,
        };
        let observer = &mut |_: Event<'_>| {};
        let generated = self.generator.generate(&request, observer, stop)?;
        let texts = generated.texts.iter().map(Continuation::ids).collect();
        Ok(generated.complete.then_some(texts))
    }

    /// The time that is left for a setting; untuned decoding, the first, may take any time.
    fn seconds_left(&self) -> f64 {
        match self.budget {
            Budget::Seconds(seconds) if !self.record.trials.is_empty() => seconds - self.spent,
            Budget::Seconds(_) | Budget::Trials(_) => f64::INFINITY,
        }
    }

    fn measure(&self, size: Size) -> &Measure {
        match size {
            Size::Part => &self.part,
            Size::Whole => &self.whole,
        }
    }

    /// Records that a trial was requested.
    fn count(&mut self, number: usize) {
        if !self.asked.insert(number) {
            return;
        }
        let before = self.spent;
        self.spent += self.record.trials[number].seconds;
        self.progress.advance(match self.budget {
            Budget::Trials(_) => 1,
            Budget::Seconds(_) => (self.spent.round() as u64).saturating_sub(before.round() as u64),
        });
    }

    fn add(&mut self, trial: Trial) -> Result<usize, Failure> {
        let best = self.record.chosen().filter(|best| best.texts == trial.texts);
        let is_better = best
            .and_then(|best| best.nearness.distance)
            .is_none_or(|best| trial.nearness.distance.is_some_and(|distance| distance < best));
        let number = self.record.trials.len();
        if is_better
            && trial.texts == self.record.conditions.texts
            && let Some(distance) = trial.nearness.distance
        {
            let decoding = &trial.decoding;
            let say = || {
                remark!(
                    "setting {}: distance {distance:.2}, the best so far: {decoding}",
                    number + 1
                );
            };
            self.progress.aside(say);
        }
        self.record.trials.push(trial);
        self.record.settle();
        self.record.save(self.path)?;
        Ok(number)
    }

    /// Measures the choice on the test split, and returns the record.
    pub(super) fn conclude(mut self) -> Result<Record, Failure> {
        self.record.settle();
        if let (Some(chosen), Some(set), false) =
            (self.record.chosen(), &self.sets.test, interrupt::asked())
        {
            let untuned = &self.record.trials[0].decoding;
            self.record.test = Test::measure(&self, set, self.seed, untuned, &chosen.decoding)?;
        }
        Ok(self.record)
    }
}

impl<D: Device> Judge for Examiner<'_, D> {
    type Error = Failure;

    fn judge(&mut self, strategy: &Strategy, size: Size) -> Result<Judged, Failure> {
        let decoding = DecodingKeys::from(strategy);
        let Measure { set, scale } = self.measure(size);
        let texts = set.references.len();
        let known = self.record.trials.iter();
        let known =
            known.enumerate().find(|(_, trial)| trial.texts == texts && trial.decoding == decoding);
        let number = if let Some((number, _)) = known {
            number
        } else {
            let (began, left) = (Instant::now(), self.seconds_left());
            let stop = || interrupt::asked() || began.elapsed().as_secs_f64() > left;
            let Some(written) = self.write(strategy, &set.prefixes, &stop)? else {
                return Ok(Judged::Ended);
            };
            let nearness = Nearness::of(scale, &set.references, &written).map_err(Failure::data)?;
            let seconds = began.elapsed().as_secs_f64();
            self.add(Trial { texts, decoding, seconds, nearness })?
        };
        self.count(number);
        Ok(Judged::Distance(self.record.trials[number].nearness.distance))
    }

    fn left(&self) -> f64 {
        match self.budget {
            Budget::Seconds(seconds) => 1.0 - self.spent / seconds,
            Budget::Trials(most) => 1.0 - self.asked.len() as f64 / most as f64,
        }
    }
}
