//! Mirostat 2 (Basu et al., 2021): the truncation that keeps a text's surprise near a target.
//!
//! A token's surprise is −log₂ of its probability under the model: class and token together where
//! a class is drawn first. So the target is the text's cross-entropy, and 2 to its power the
//! perplexity, in both factorisations: what the draw of a class surprises by, the tokens after it make
//! up for.

use std::f64::consts::LN_2;

use super::checks::check_positive;
use crate::Error;

/// The target and the pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mirostat {
    /// The target surprise of a token, in bits.
    pub tau: f64,
    /// How much of a token's deviation from the target changes the limit of the next.
    pub eta: f64,
}

impl Default for Mirostat {
    fn default() -> Self {
        Self { tau: 5.0, eta: 0.1 }
    }
}

/// The most a sequence's next token may surprise, in bits: what mirostat knows of the text so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit(pub(super) f64);

impl Mirostat {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_positive("mirostat tau", self.tau)?;
        check_positive("mirostat eta", self.eta)
    }

    /// The limit of a text's first token.
    pub(super) fn start(&self) -> Limit {
        Limit(2.0 * self.tau)
    }

    /// The limit after a token of this log-probability under the model, in nats.
    pub(super) fn after(&self, Limit(bits): Limit, log_probability: f32) -> Limit {
        let surprise = -f64::from(log_probability) / LN_2;
        Limit(bits - self.eta * (surprise - self.tau))
    }
}

impl Limit {
    /// The log-probability a token must reach, of those there are: at least the most likely does.
    pub(super) fn threshold(self, logs: impl Iterator<Item = f32>) -> f64 {
        let largest = f64::from(logs.fold(f32::NEG_INFINITY, f32::max));
        (-self.0 * LN_2).min(largest)
    }
}
