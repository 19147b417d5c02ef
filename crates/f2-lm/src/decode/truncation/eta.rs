//! The eta cut-off (Hewitt et al., 2022): the epsilon cut-off, lower if the entropy is high.

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
use super::{Effect, TruncationRule, Truncations, epsilon_cutoff};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "eta_cutoff",
    name: "eta cut-off",
    setting: TruncationSetting::Share,
    value_name: "P",
    help: "Keep tokens of at least this probability, or of less where the entropy is high",
    advice: "`--eta-cutoff 0.0003` to 0.004 is usual",
    is_well_known: false,
    field: "eta_cutoff",
    none: &[0.0],
    transformers: Some(Foreign { name: "eta_cutoff", unset: None }),
    effect: Effect::Probabilities(eta_cutoff),
    on_device: |sampling, eta| Some(TokenSampling { eta_cutoff: Some(eta), ..sampling }),
};

impl Truncations {
    /// Sets the eta cut-off; `None` turns it off.
    #[must_use]
    pub fn with_eta_cutoff(self, epsilon: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, epsilon)
    }
}

/// Those with at least the probability `min(epsilon, √epsilon · exp(−entropy))`; the most likely if
/// there are none. The higher the entropy, the lower the cut-off.
#[must_use]
pub fn eta_cutoff(distribution: Distribution, epsilon: f64) -> Distribution {
    let cutoff = epsilon.min(epsilon.sqrt() * (-distribution.entropy()).exp());
    epsilon_cutoff(distribution, cutoff)
}
