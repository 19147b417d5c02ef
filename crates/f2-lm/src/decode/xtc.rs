//! XTC, "exclude top choices": at random, the likeliest tokens are left out if another is likely
//! enough (known from text-generation-webui and llama.cpp; there is no paper).

use f2_engine::Philox;

use super::Distribution;
use super::checks::{check_share, require};
use crate::Error;

/// How often the top choices are left out, and which.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xtc {
    /// The probability of leaving them out.
    pub probability: f64,
    /// Of the tokens with at least this probability, all but the least likely are left out. Above
    /// 0.5 there are never two.
    pub threshold: f64,
}

impl Default for Xtc {
    fn default() -> Self {
        Self { probability: 0.5, threshold: 0.1 }
    }
}

impl Xtc {
    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { probability, threshold } = *self;
        check_share("XTC probability", probability)?;
        require("XTC threshold", threshold > 0.0 && threshold <= 0.5, || {
            format!("{threshold} is not a probability above 0 and up to 0.5")
        })
    }

    /// Leaves out the top choices at random. Takes one random number, even if there is nothing to
    /// leave out.
    pub(super) fn apply(&self, distribution: Distribution, random: &mut Philox) -> Distribution {
        if random.uniform() < self.probability { self.exclude(distribution) } else { distribution }
    }

    /// Leaves out the top choices. Of equally likely ones, the one with the largest id is kept.
    pub(super) fn exclude(&self, distribution: Distribution) -> Distribution {
        let top = distribution.entries().iter().filter(|(_, q)| *q >= self.threshold);
        let Some(&(stays, _)) =
            top.min_by(|left, right| left.1.total_cmp(&right.1).then(right.0.cmp(&left.0)))
        else {
            return distribution;
        };
        distribution.retain(|id, probability| id == stays || probability < self.threshold)
    }
}
