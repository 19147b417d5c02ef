//! Top-nσ (Tang et al., 2024): tokens within some standard deviations of the largest logit.

use f2_engine::TokenSampling;

use super::rule::TruncationSetting;
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "top_n_sigma",
    name: "top-nσ",
    setting: TruncationSetting::Positive,
    value_name: "N",
    help: "Keep tokens whose logit is within N standard deviations of the largest",
    advice: "`--top-n-sigma 1` is usual; larger numbers keep more",
    is_well_known: false,
    field: "top_n_sigma",
    // Some servers take -1 for off.
    none: &[0.0, -1.0],
    transformers: None,
    effect: Effect::LogThreshold(threshold),
    on_device: |sampling, n| Some(TokenSampling { top_n_sigma: Some(n), ..sampling }),
};

impl Truncations {
    /// Sets top-nσ; `None` turns it off.
    #[must_use]
    pub fn with_top_n_sigma(self, n: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, n)
    }
}

/// The least log-probability that is kept: `n` standard deviations of all of them below the
/// largest.
///
/// Log-probabilities are logits plus a constant, which changes neither the deviation nor the
/// distance to the largest. Dividing all by a temperature keeps the same tokens. Tokens that are
/// blocked do not count.
fn threshold(logs: &[f64], n: f64) -> f64 {
    let possible = logs.iter().copied().filter(|log| log.is_finite());
    let (mut count, mut sum, mut largest) = (0.0, 0.0, f64::NEG_INFINITY);
    for log in possible.clone() {
        (count, sum, largest) = (count + 1.0, sum + log, largest.max(log));
    }
    let mean = sum / count;
    let squares: f64 = possible.map(|log| (log - mean).powi(2)).sum();
    // If no token is possible this is NaN, which nothing reaches.
    largest - n * (squares / count).sqrt()
}
