//! Locally typical sampling (Meister et al., 2023).

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
use super::top_p::keep_until;
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "typical",
    name: "typical",
    setting: TruncationSetting::Share,
    value_name: "P",
    help: "Keep the most typical tokens that reach this mass",
    advice: "`--typical 0.95` is usual; 1 keeps all tokens",
    is_well_known: false,
    field: "typical_p",
    none: &[1.0],
    transformers: Some(Foreign { name: "typical_p", unset: None }),
    effect: Effect::Probabilities(typical),
    on_device: |sampling, p| Some(TokenSampling { typical: Some(p), ..sampling }),
};

impl Truncations {
    /// Sets locally typical sampling; `None` turns it off.
    #[must_use]
    pub fn with_typical(self, p: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, p)
    }
}

/// The fewest that together reach the mass `p`, those first whose information is closest to the
/// entropy.
#[must_use]
pub fn typical(distribution: Distribution, p: f64) -> Distribution {
    if p >= 1.0 {
        return distribution;
    }
    let entropy = distribution.entropy();
    keep_until((distribution, 0.0), p, |_, probability| (-probability.ln() - entropy).abs())
}
