//! Locally typical sampling (Meister et al., 2023).

use super::super::Distribution;
use super::nucleus::keep_until;

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
