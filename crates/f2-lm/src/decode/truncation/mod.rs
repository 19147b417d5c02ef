//! The truncation rules on tokens: a file for each, which has everything about it, and the list of them.
//!
//! A new rule is its file, its line in [`RULES`] and its row in docs/decoding.md. Its flag, its field in
//! requests, its key in `decoding.toml`, its check and its messages follow from the list.

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
pub use top_p::nucleus;
pub use typical::typical;

pub(crate) use rule::Foreign;
pub(super) use top_k::kth_largest;

/// The rules, in the order they are written to files. Those with a threshold on log-probabilities act
/// first, all on the same tokens; then the others in this order, each on the result of the one before.
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
    /// Keeps tokens of at least a log-probability, which follows from those of all tokens before the
    /// temperature. These come first, and each sees what all of them see.
    LogThreshold(fn(&[f64], f64) -> f64),
    /// Truncates what the rules before it left, at the temperature.
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

    /// The thresholds that a log-probability has to reach, whatever the temperature.
    fn thresholds(&self, logs: impl Iterator<Item = f64>) -> Vec<f64> {
        let rules = self.set().filter_map(|(rule, setting)| match rule.effect {
            Effect::LogThreshold(threshold) => Some((threshold, setting)),
            Effect::Probabilities(_) => None,
        });
        let mut rules = rules.peekable();
        // All numbers reach this one; what is not a number does not.
        let mut thresholds = vec![f64::NEG_INFINITY];
        if rules.peek().is_some() {
            let logs: Vec<f64> = logs.collect();
            thresholds.extend(rules.map(|(threshold, setting)| threshold(&logs, setting)));
        }
        thresholds
    }

    /// The same for a device; none where a rule takes the host.
    pub(super) fn on_device(&self, temperature: f64) -> Option<TokenSampling> {
        let all = TokenSampling { temperature, top_k: None, min_p: None };
        self.set().try_fold(all, |sampling, (rule, setting)| (rule.on_device)(sampling, setting))
    }
}
