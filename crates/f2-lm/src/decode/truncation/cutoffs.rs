//! Epsilon and eta cut-offs (Hewitt et al., 2022): tokens below a probability are what a softmax smoothed
//! in, not what the text could go on with.

use super::super::Distribution;

/// Those of at least the probability `epsilon`; the most likely where there is none.
#[must_use]
pub fn epsilon_cutoff(distribution: Distribution, epsilon: f64) -> Distribution {
    let largest = distribution.entries().iter().map(|(_, q)| *q).fold(0.0, f64::max);
    distribution.retain(|_, probability| probability >= epsilon.min(largest))
}

/// Those of at least the probability `min(epsilon, √epsilon · exp(−entropy))`; the most likely where
/// there is none. The more there is to choose from, the lower the cut-off.
#[must_use]
pub fn eta_cutoff(distribution: Distribution, epsilon: f64) -> Distribution {
    let cutoff = epsilon.min(epsilon.sqrt() * (-distribution.entropy()).exp());
    epsilon_cutoff(distribution, cutoff)
}
