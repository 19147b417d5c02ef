//! The truncation rules on tokens, in one list, and a file for each.
//!
//! [`Truncations`] holds every part of a rule: its setting, its check, its effect on the host, and
//! whether devices have it. Each part destructures the list field by field, so that a rule forgotten
//! in one of them does not compile.

mod cutoffs;
mod min_p;
mod nucleus;
#[cfg(test)]
mod tests;
mod top_k;
mod top_n_sigma;
mod typical;

use f2_engine::TokenSampling;

use super::Distribution;
use super::strategy::{check_k, check_positive, check_share};
use crate::Error;

pub use cutoffs::{epsilon_cutoff, eta_cutoff};
pub use min_p::min_p;
pub use nucleus::nucleus;
pub use top_k::top_k;
pub use typical::typical;

pub(super) use top_k::kth_largest;

/// The rules on tokens, in the order they are applied; each applies to the result of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truncations {
    /// Keeps tokens within this many standard deviations of the largest logit.
    pub top_n_sigma: Option<f64>,
    /// Keeps the k most likely tokens, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most typical tokens that reach this mass.
    pub typical: Option<f64>,
    /// Keeps the fewest tokens that reach this mass.
    pub top_p: Option<f64>,
    /// Keeps tokens at least this share as likely as the most likely.
    pub min_p: Option<f64>,
    /// Keeps tokens of at least this probability.
    pub epsilon: Option<f64>,
    /// Keeps tokens of at least this probability, or of less where the entropy is high.
    pub eta: Option<f64>,
}

impl Truncations {
    /// The names of the rules.
    pub(super) const NAMES: &str = "top-k, top-p, min-p, typical, top-nσ, epsilon and eta cut-offs";

    /// Checks the settings against the size of the vocabulary.
    pub(super) fn check(&self, vocabulary: usize) -> Result<(), Error> {
        let Self { top_n_sigma, top_k, typical, top_p, min_p, epsilon, eta } = *self;
        check_positive("top-nσ", top_n_sigma.unwrap_or(1.0))?;
        check_k("top-k", top_k, vocabulary, "tokens")?;
        let shares = [
            ("top-p", top_p),
            ("min-p", min_p),
            ("typical", typical),
            ("epsilon cut-off", epsilon),
            ("eta cut-off", eta),
        ];
        for (option, share) in shares {
            check_share(option, share.unwrap_or(1.0))?;
        }
        Ok(())
    }

    /// The distribution with these log-probabilities at a temperature above zero, truncated.
    pub(super) fn distribution(
        &self,
        logs: impl Iterator<Item = (u32, f32)> + Clone,
        temperature: f64,
    ) -> Distribution {
        let Self {
            top_n_sigma,
            top_k,
            typical: typical_mass,
            top_p,
            min_p: min_share,
            epsilon,
            eta,
        } = *self;
        // Ties are those of log-probabilities, whatever the temperature.
        let values = logs.clone().map(|(_, log)| f64::from(log));
        let of_k = top_k.map_or(f64::NEG_INFINITY, |k| kth_largest(values.clone(), k));
        let of_sigma = top_n_sigma.map_or(f64::NEG_INFINITY, |n| top_n_sigma::threshold(values, n));
        let is_kept = |log: f64| log >= of_k && log >= of_sigma;
        let kept = logs.filter(|(_, log)| is_kept(f64::from(*log)));
        let mut distribution = Distribution::from_logs(kept, temperature);
        let mut apply = |rule: fn(Distribution, f64) -> Distribution, setting: Option<f64>| {
            if let Some(setting) = setting {
                let before = std::mem::take(&mut distribution);
                distribution = rule(before, setting);
            }
        };
        apply(typical, typical_mass);
        apply(nucleus, top_p);
        apply(min_p, min_share);
        apply(epsilon_cutoff, epsilon);
        apply(eta_cutoff, eta);
        distribution
    }

    /// The same for a device; none where a rule is the host's alone.
    pub(super) fn on_device(&self, temperature: f64) -> Option<TokenSampling> {
        let Self { top_n_sigma, top_k, typical, top_p, min_p, epsilon, eta } = *self;
        let keeps_all = |share: Option<f64>| share.is_none_or(|share| share >= 1.0);
        let hosts = top_n_sigma.is_some() || epsilon.is_some() || eta.is_some();
        let sampling = TokenSampling { temperature, top_k, min_p };
        (keeps_all(typical) && keeps_all(top_p) && !hosts).then_some(sampling)
    }
}
