//! The epsilon cut-off (Hewitt et al., 2022): drops tokens below a probability, which a softmax
//! assigns by smoothing rather than because they fit the text.

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "epsilon_cutoff",
    name: "epsilon cut-off",
    setting: TruncationSetting::Share,
    value_name: "P",
    help: "Keep tokens of at least this probability",
    advice: "`--epsilon-cutoff 0.0003` to 0.002 is usual",
    is_well_known: false,
    field: "epsilon_cutoff",
    none: &[0.0],
    transformers: Some(Foreign { name: "epsilon_cutoff", unset: None }),
    effect: Effect::Probabilities(epsilon_cutoff),
    on_device: |sampling, epsilon| {
        Some(TokenSampling { epsilon_cutoff: Some(epsilon), ..sampling })
    },
};

impl Truncations {
    /// Sets the epsilon cut-off; `None` turns it off.
    #[must_use]
    pub fn with_epsilon_cutoff(self, epsilon: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, epsilon)
    }
}

/// Those with at least the probability `epsilon`; the most likely if there are none.
#[must_use]
pub fn epsilon_cutoff(distribution: Distribution, epsilon: f64) -> Distribution {
    let largest = distribution.entries().iter().map(|(_, q)| *q).fold(0.0, f64::max);
    distribution.retain(|_, probability| probability >= epsilon.min(largest))
}
