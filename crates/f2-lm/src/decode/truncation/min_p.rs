//! Min-p (Nguyen et al., 2024).

use super::super::Distribution;

/// Those at least `p` times as likely as the most likely.
#[must_use]
pub fn min_p(distribution: Distribution, p: f64) -> Distribution {
    let probabilities = distribution.entries().iter().map(|(_, probability)| *probability);
    let threshold = p * probabilities.fold(0.0, f64::max);
    distribution.retain(|_, probability| probability >= threshold)
}
