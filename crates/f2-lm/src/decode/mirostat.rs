//! Mirostat 2 (Basu et al., 2021): the truncation that keeps a text's surprise near a target.
//!
//! A token's surprise is −log₂ of its probability under the model, class and token together if a
//! class is drawn first. The target is thus the text's cross-entropy, and 2 to the power of it the
//! perplexity, in both factorisations: the choice of tokens compensates for the surprise of the
//! drawn classes.

use std::f64::consts::LN_2;

use super::checks::check_positive;
use crate::Error;

/// The target and the step size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mirostat {
    /// The target surprise of a token, in bits.
    pub tau: f64,
    /// The share of a token's deviation from the target by which the limit changes.
    pub eta: f64,
}

impl Default for Mirostat {
    fn default() -> Self {
        Self { tau: 5.0, eta: 0.1 }
    }
}

/// The largest surprise allowed of a sequence's next token, in bits: the state of mirostat.
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
    /// The log-probability a token must reach, at most the largest of `logs`: one token is always
    /// kept.
    pub(super) fn threshold(self, logs: impl Iterator<Item = f32>) -> f64 {
        let largest = f64::from(logs.fold(f32::NEG_INFINITY, f32::max));
        (-self.0 * LN_2).min(largest)
    }
}
