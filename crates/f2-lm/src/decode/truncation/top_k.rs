//! Top-k (Fan et al., 2018).

use super::super::Distribution;

/// The `k` most likely, and all that tie with the last of them.
#[must_use]
pub fn top_k(distribution: Distribution, k: usize) -> Distribution {
    let threshold =
        kth_largest(distribution.entries().iter().map(|(_, probability)| *probability), k);
    distribution.retain(|_, probability| probability >= threshold)
}

/// The `k`-th largest value; the smallest possible where there are not as many.
pub(in crate::decode) fn kth_largest(values: impl Iterator<Item = f64>, k: usize) -> f64 {
    let mut kept: Vec<f64> = Vec::new();
    let mut threshold = f64::NEG_INFINITY;
    let capacity = 2 * k.max(1);
    let shrink = |kept: &mut Vec<f64>| {
        kept.select_nth_unstable_by(k - 1, |left, right| right.total_cmp(left));
        kept.truncate(k);
        kept[k - 1]
    };
    // A value that does not exceed k others cannot move the k-th.
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
