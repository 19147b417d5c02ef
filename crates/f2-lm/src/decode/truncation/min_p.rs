//! Min-p (Nguyen et al., 2024).

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "min_p",
    name: "min-p",
    setting: TruncationSetting::Share,
    value_name: "P",
    help: "Keep tokens at least this share as likely as the most likely",
    advice: "`--min-p 0.1` is usual; 1 keeps the most likely token alone",
    is_well_known: true,
    field: "min_p",
    none: &[0.0],
    transformers: Some(Foreign { name: "min_p", unset: None }),
    effect: Effect::Probabilities(min_p),
    on_device: |sampling, p| Some(TokenSampling { min_p: Some(p), ..sampling }),
};

impl Truncations {
    /// Sets min-p; `None` turns it off.
    #[must_use]
    pub fn with_min_p(self, p: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, p)
    }
}

/// Those at least `p` times as likely as the most likely.
#[must_use]
pub fn min_p(distribution: Distribution, p: f64) -> Distribution {
    let probabilities = distribution.entries().iter().map(|(_, probability)| *probability);
    let threshold = p * probabilities.fold(0.0, f64::max);
    distribution.retain(|_, probability| probability >= threshold)
}
