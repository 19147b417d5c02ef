//! The settings of a beam search, and their checks.

use crate::Error;
use crate::decode::checks::require;
use crate::decode::{ClassDraw, Factorisation, Strategy, Truncations};

/// Beam search, and diverse beam search with more than one group.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamSearch {
    /// Hypotheses kept.
    pub width: usize,
    /// The number of groups; each avoids the tokens chosen by those before it.
    pub groups: usize,
    /// The penalty on a hypothesis for each use of its token by an earlier group, in nats.
    pub diversity: f64,
    /// A finished text's log-probability is divided by its length to this power.
    pub length_penalty: f64,
    /// The number of searches, each excluding the hypotheses of earlier ones.
    pub iterations: usize,
}

impl Default for BeamSearch {
    fn default() -> Self {
        Self { width: 4, groups: 1, diversity: 0.5, length_penalty: 1.0, iterations: 1 }
    }
}

impl BeamSearch {
    /// How many of `prompts` prompts are searched at a time, with about `batch` hypotheses in all.
    pub(in crate::decode) fn at_a_time(&self, batch: usize, prompts: usize) -> usize {
        (batch / self.width).clamp(1, prompts.max(1))
    }

    /// The most texts that are found for a prompt.
    pub fn texts(&self) -> usize {
        self.width.saturating_mul(self.iterations)
    }

    /// How many classes and how many tokens are considered to extend a hypothesis in an iteration:
    /// enough even if those of other groups, the end token and what earlier iterations explored are
    /// skipped.
    pub(in crate::decode) fn counts(&self, iteration: usize) -> [usize; 2] {
        let passed = self.width.saturating_mul(iteration + 1);
        [passed, passed.saturating_add(self.width / self.groups)]
    }

    pub(in crate::decode) fn check(
        &self,
        strategy: &Strategy,
        vocabulary: usize,
    ) -> Result<(), Error> {
        let Self { width, groups, diversity, length_penalty, iterations } = *self;
        require("beam iterations", iterations >= 1, || "0 is not from 1 up".to_owned())?;
        require("beam width", (1..=vocabulary).contains(&width), || {
            format!("{width} is not from 1 to the model's {vocabulary} tokens")
        })?;
        require("beam groups", groups >= 1 && width.is_multiple_of(groups), || {
            format!("{groups} groups cannot share a beam of {width}")
        })?;
        require("diversity", diversity.is_finite() && diversity >= 0.0, || {
            format!("{diversity} is not a number from 0 up")
        })?;
        require("length penalty", length_penalty.is_finite(), || {
            format!("{length_penalty} is not a number")
        })?;
        let draws = strategy.truncations != Truncations::default()
            || strategy.xtc.is_some()
            || strategy.mirostat.is_some();
        let classes = match &strategy.factorisation {
            Factorisation::Decoupled(draw) => *draw == ClassDraw::default(),
            Factorisation::Joint => true,
        };
        require("beam", !draws && classes && strategy.temperature == 1.0, || {
            format!(
                "it searches and does not draw: leave temperature, {}, XTC, mirostat and \
                 the classes' own out",
                Truncations::names()
            )
        })
    }
}
