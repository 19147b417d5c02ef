//! Top-k (Fan et al., 2018).

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "top_k",
    name: "top-k",
    setting: TruncationSetting::Count,
    value_name: "K",
    help: "Keep the k most likely tokens",
    advice: "the paper takes `--top-k 3` for English and `--top-k 20` for lyrics",
    is_well_known: true,
    field: "top_k",
    // As in other servers.
    none: &[0.0, -1.0],
    // By default `transformers` keeps 50.
    transformers: Some(Foreign { name: "top_k", unset: Some(0.0) }),
    // Ties are those of log-probabilities, independent of the temperature.
    effect: Effect::LogThreshold(|logs, k| kth_largest(logs.iter().copied(), k as usize)),
    on_device: |sampling, k| Some(TokenSampling { top_k: Some(k as usize), ..sampling }),
};

impl Truncations {
    /// Sets top-k; `None` turns it off.
    #[must_use]
    pub fn with_top_k(self, k: impl Into<Option<usize>>) -> Self {
        self.with(&RULE, k.into().map(|k| k as f64))
    }

    /// The k of top-k.
    pub fn top_k(&self) -> Option<usize> {
        self.get(&RULE).map(|k| k as usize)
    }
}

/// The `k` most likely, and all that tie with the last of them.
#[must_use]
pub fn top_k(distribution: Distribution, k: usize) -> Distribution {
    let threshold =
        kth_largest(distribution.entries().iter().map(|(_, probability)| *probability), k);
    distribution.retain(|_, probability| probability >= threshold)
}

/// The `k`-th largest value; −∞ if there are fewer.
pub(in crate::decode) fn kth_largest(values: impl Iterator<Item = f64>, k: usize) -> f64 {
    let mut kept: Vec<f64> = Vec::new();
    let mut threshold = f64::NEG_INFINITY;
    let capacity = 2 * k.max(1);
    let shrink = |kept: &mut Vec<f64>| {
        kept.select_nth_unstable_by(k - 1, |left, right| right.total_cmp(left));
        kept.truncate(k);
        kept[k - 1]
    };
    // A value that does not exceed k others cannot change the k-th largest.
    for value in values {
        if value > threshold {
            kept.push(value);
            if kept.len() == capacity {
                threshold = shrink(&mut kept);
            }
        }
    }
    if kept.len() >= k { shrink(&mut kept) } else { f64::NEG_INFINITY }
}
