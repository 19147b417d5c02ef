//! The truncation rules: a file with everything about each, and the list of them.
//!
//! A new rule takes a file, a line in [`RULES`] and a row in docs/decoding.md. Its flag, its field
//! in requests, its key in `decoding.toml`, its check and its messages follow from the list.

mod epsilon;
mod eta;
mod min_p;
mod rule;
mod settings;
#[cfg(test)]
mod tests;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;

use f2_engine::TokenSampling;

use super::Distribution;

pub use epsilon::epsilon_cutoff;
pub use eta::eta_cutoff;
pub use min_p::min_p;
pub use rule::{TruncationRule, TruncationSetting};
pub use settings::Truncations;
pub use top_k::top_k;
pub use top_p::top_p;
pub use typical::typical;

pub(crate) use rule::Foreign;
pub(super) use top_k::kth_largest;

/// The rules, in the order they are written to files. Those with a threshold on log-probabilities
/// are applied first, all to the same tokens; then the others in this order, each to the result of
/// the one before.
const RULES: &[TruncationRule] = &[
    top_k::RULE,
    typical::RULE,
    top_p::RULE,
    min_p::RULE,
    top_n_sigma::RULE,
    epsilon::RULE,
    eta::RULE,
];

/// The effect of a rule on tokens.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Keeps tokens with at least the log-probability that the function computes from those of all
    /// tokens, before the temperature. These rules are applied first, all to the same tokens.
    LogThreshold(fn(&[f64], f64) -> f64),
    /// Truncates the distribution left by the rules before it, after the temperature.
    Probabilities(fn(Distribution, f64) -> Distribution),
}

impl Truncations {
    /// The distribution with these log-probabilities at a temperature above zero, truncated.
    pub(super) fn distribution(
        &self,
        logs: impl Iterator<Item = (u32, f32)> + Clone,
        temperature: f64,
    ) -> Distribution {
        let thresholds = self.thresholds(logs.clone().map(|(_, log)| f64::from(log)));
        let is_kept = |log: f64| thresholds.iter().all(|threshold| log >= *threshold);
        let kept = logs.filter(|(_, log)| is_kept(f64::from(*log)));
        let distribution = Distribution::from_logs(kept, temperature);
        self.set().fold(distribution, |distribution, (rule, setting)| match rule.effect {
            Effect::Probabilities(truncate) => truncate(distribution, setting),
            Effect::LogThreshold(_) => distribution,
        })
    }

    /// The thresholds that a log-probability has to reach, independent of the temperature.
    fn thresholds(&self, logs: impl Iterator<Item = f64>) -> Vec<f64> {
        let rules = self.set().filter_map(|(rule, setting)| match rule.effect {
            Effect::LogThreshold(threshold) => Some((threshold, setting)),
            Effect::Probabilities(_) => None,
        });
        let mut rules = rules.peekable();
        // All numbers reach this one; NaN does not.
        let mut thresholds = vec![f64::NEG_INFINITY];
        if rules.peek().is_some() {
            let logs: Vec<f64> = logs.collect();
            thresholds.extend(rules.map(|(threshold, setting)| threshold(&logs, setting)));
        }
        thresholds
    }

    /// The settings for a draw on the device; `None` if a rule needs the host.
    pub(super) fn on_device(&self, temperature: f64) -> Option<TokenSampling> {
        let all = TokenSampling::all(temperature);
        self.set().try_fold(all, |sampling, (rule, setting)| (rule.on_device)(sampling, setting))
    }
}
