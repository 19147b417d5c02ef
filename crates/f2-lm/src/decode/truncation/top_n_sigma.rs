//! Top-nσ (Tang et al., 2024): tokens within some standard deviations of the largest logit.

/// The least log-probability that is kept: `n` standard deviations of all of them below the largest.
///
/// Log-probabilities are logits but for a constant, which neither the deviation nor the distance to
/// the largest sees. Dividing all by a temperature keeps the same tokens. Tokens that are blocked do not
/// count.
pub(super) fn threshold(logs: impl Iterator<Item = f64> + Clone, n: f64) -> f64 {
    let possible = logs.filter(|log| log.is_finite());
    let (mut count, mut sum, mut largest) = (0.0, 0.0, f64::NEG_INFINITY);
    for log in possible.clone() {
        (count, sum, largest) = (count + 1.0, sum + log, largest.max(log));
    }
    let mean = sum / count;
    let squares: f64 = possible.map(|log| (log - mean).powi(2)).sum();
    // Where nothing is possible this is no number, and nothing reaches it.
    largest - n * (squares / count).sqrt()
}
