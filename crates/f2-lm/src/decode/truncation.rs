//! The truncation rules on tokens, in one list: top-k, typical, top-p, min-p.
//!
//! [`Truncations`] holds every part of a rule: its setting, its check, its effect on the host, and
//! whether devices have it. Each part destructures the list field by field, so that a rule forgotten
//! in one of them does not compile.

use f2_engine::TokenSampling;

use super::Distribution;
use super::strategy::{check_k, check_share};
use crate::Error;

/// The rules on tokens, in the order they are applied; each applies to the result of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truncations {
    /// Keeps the k most likely tokens, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most typical tokens that reach this mass.
    pub typical: Option<f64>,
    /// Keeps the fewest tokens that reach this mass.
    pub top_p: Option<f64>,
    /// Keeps tokens at least this share as likely as the most likely.
    pub min_p: Option<f64>,
}

impl Truncations {
    /// The names of the rules.
    pub(super) const NAMES: &str = "top-k, top-p, min-p, typical";

    /// Checks the settings against the size of the vocabulary.
    pub(super) fn check(&self, vocabulary: usize) -> Result<(), Error> {
        let Self { top_k, typical, top_p, min_p } = *self;
        check_k("top-k", top_k, vocabulary, "tokens")?;
        for (option, share) in [("top-p", top_p), ("min-p", min_p), ("typical", typical)] {
            check_share(option, share.unwrap_or(1.0))?;
        }
        Ok(())
    }

    /// The distribution with these log-probabilities at a temperature above zero, truncated.
    pub(super) fn distribution(
        &self,
        logs: impl Iterator<Item = (u32, f32)> + Clone,
        temperature: f64,
    ) -> Distribution {
        let Self { top_k, typical: typical_mass, top_p, min_p: min_share } = *self;
        // Ties are those of log-probabilities, whatever the temperature.
        let threshold = top_k.map_or(f64::NEG_INFINITY, |k| {
            kth_largest(logs.clone().map(|(_, log)| f64::from(log)), k)
        });
        let kept = logs.filter(|(_, log)| f64::from(*log) >= threshold);
        let mut distribution = Distribution::from_logs(kept, temperature);
        if let Some(mass) = typical_mass {
            distribution = typical(distribution, mass);
        }
        if let Some(mass) = top_p {
            distribution = nucleus(distribution, mass);
        }
        match min_share {
            Some(share) => min_p(distribution, share),
            None => distribution,
        }
    }

    /// The same for a device; none where a rule is the host's alone, which sorts tokens.
    pub(super) fn on_device(&self, temperature: f64) -> Option<TokenSampling> {
        let Self { top_k, typical, top_p, min_p } = *self;
        let keeps_all = |share: Option<f64>| share.is_none_or(|share| share >= 1.0);
        let sampling = TokenSampling { temperature, top_k, min_p };
        (keeps_all(typical) && keeps_all(top_p)).then_some(sampling)
    }
}

/// The `k` most likely, and all that tie with the last of them.
#[must_use]
pub fn top_k(distribution: Distribution, k: usize) -> Distribution {
    let threshold =
        kth_largest(distribution.entries().iter().map(|(_, probability)| *probability), k);
    distribution.retain(|_, probability| probability >= threshold)
}

/// The fewest that together reach the mass `p`, the most likely first (Holtzman et al., 2020).
#[must_use]
pub fn nucleus(distribution: Distribution, p: f64) -> Distribution {
    if p >= 1.0 {
        return distribution;
    }
    // All entries below this share of the rest together cannot be needed, so most are not sorted.
    let floor = (1.0 - p) / distribution.entries().len() as f64;
    keep_until(distribution.retain_above(floor), p, |_, probability| -probability)
}

/// Those at least `p` times as likely as the most likely.
#[must_use]
pub fn min_p(distribution: Distribution, p: f64) -> Distribution {
    let probabilities = distribution.entries().iter().map(|(_, probability)| *probability);
    let threshold = p * probabilities.fold(0.0, f64::max);
    distribution.retain(|_, probability| probability >= threshold)
}

/// The fewest that together reach the mass `p`, those first whose information is closest to the
/// entropy (Meister et al., 2023).
#[must_use]
pub fn typical(distribution: Distribution, p: f64) -> Distribution {
    if p >= 1.0 {
        return distribution;
    }
    let entropy: f64 = distribution.entries().iter().map(|(_, q)| -q * q.ln()).sum();
    keep_until((distribution, 0.0), p, |_, probability| (-probability.ln() - entropy).abs())
}

impl Distribution {
    /// Entries above `floor` as they are, and the mass that all others had.
    fn retain_above(self, floor: f64) -> (Self, f64) {
        let kept: f64 = self.entries().iter().map(|(_, q)| *q).filter(|q| *q >= floor).sum();
        (self.retain(|_, probability| probability >= floor), 1.0 - kept)
    }
}

/// Keeps entries in ascending order of `rank` until they reach `p` of the mass there was before
/// `dropped` of it went. Ties in rank go by id.
fn keep_until(
    (distribution, dropped): (Distribution, f64),
    p: f64,
    rank: impl Fn(u32, f64) -> f64,
) -> Distribution {
    let mut sorted: Vec<(f64, u32, f64)> =
        distribution.entries().iter().map(|(id, q)| (rank(*id, *q), *id, *q)).collect();
    sorted.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let mut mass = 0.0;
    let needed = sorted.iter().take_while(|(_, _, probability)| {
        let before = mass;
        mass += probability * (1.0 - dropped);
        before < p
    });
    let mut kept: Vec<u32> = needed.map(|(_, id, _)| *id).collect();
    kept.sort_unstable();
    distribution.retain(|id, _| kept.binary_search(&id).is_ok())
}

/// The `k`-th largest value; the smallest possible where there are not as many.
pub(super) fn kth_largest(values: impl Iterator<Item = f64>, k: usize) -> f64 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distribution() -> impl Strategy<Value = Distribution> {
        prop::collection::vec(1_u32..50, 1..40).prop_map(|weights| {
            Distribution::from_weights((0..).zip(weights.into_iter().map(f64::from)))
        })
    }

    fn ids(distribution: &Distribution) -> Vec<u32> {
        distribution.entries().iter().map(|(id, _)| *id).collect()
    }

    proptest! {
        #[test]
        fn top_k_keeps_ties_and_nothing_less_likely(distribution in distribution(), k in 1_usize..50) {
            let mut sorted: Vec<f64> = distribution.entries().iter().map(|(_, q)| *q).collect();
            sorted.sort_unstable_by(|left, right| right.total_cmp(left));
            let threshold = sorted[(k - 1).min(sorted.len() - 1)];
            let expected: Vec<u32> =
                distribution.entries().iter().filter(|(_, q)| *q >= threshold).map(|(id, _)| *id).collect();
            prop_assert_eq!(ids(&top_k(distribution, k)), expected);
        }

        /// The mass is reached, and without the least likely of those kept it is not.
        #[test]
        fn the_nucleus_is_the_smallest_that_reaches_its_mass(distribution in distribution(), p in 0.01..1.0_f64) {
            let kept = ids(&nucleus(distribution.clone(), p));
            let mut masses: Vec<f64> = kept.iter().map(|id| distribution.probability(*id)).collect();
            let all: f64 = masses.iter().sum();
            prop_assert!(all > p - 1e-9);
            masses.sort_unstable_by(f64::total_cmp);
            prop_assert!(all - masses[0] < p + 1e-9);
            let left_out = distribution.entries().iter().filter(|(id, _)| !kept.contains(id));
            prop_assert!(left_out.map(|(_, q)| *q).fold(0.0, f64::max) <= masses[0]);
        }

        #[test]
        fn every_truncation_keeps_a_distribution(distribution in distribution(), p in 0.01..=1.0_f64) {
            for cut in [nucleus(distribution.clone(), p), min_p(distribution.clone(), p), typical(distribution.clone(), p)] {
                let sum: f64 = cut.entries().iter().map(|(_, q)| *q).sum();
                prop_assert!((sum - 1.0).abs() < 1e-9);
                // The kept tokens keep their proportions.
                let (id, q) = cut.entries()[0];
                for (other, r) in cut.entries() {
                    let before = distribution.probability(id) / distribution.probability(*other);
                    prop_assert!((q / r - before).abs() < 1e-9 * before);
                }
            }
        }
    }

    #[test]
    fn typical_sampling_may_leave_out_the_most_likely() {
        let distribution = Distribution::from_weights([(0, 0.46), (1, 0.18), (2, 0.18), (3, 0.18)]);
        // Entropy 1.28; information 0.78, 1.71, 1.71, 1.71: distances 0.51 and 0.43.
        assert_eq!(ids(&typical(distribution, 0.5)), [1, 2, 3]);
        let distribution =
            Distribution::from_weights([(0, 0.5), (1, 0.25), (2, 0.125), (3, 0.125)]);
        // Entropy 1.21: distances 0.52, 0.17, 0.87, 0.87.
        assert_eq!(ids(&typical(distribution, 0.6)), [0, 1]);
    }

    #[test]
    fn min_p_is_a_share_of_the_most_likely() {
        let distribution = Distribution::from_weights([(0, 0.5), (1, 0.3), (2, 0.1), (3, 0.1)]);
        assert_eq!(ids(&min_p(distribution.clone(), 0.6)), [0, 1]);
        assert_eq!(ids(&min_p(distribution.clone(), 0.61)), [0]);
        assert_eq!(ids(&min_p(distribution, 0.2)), [0, 1, 2, 3]);
    }
}
