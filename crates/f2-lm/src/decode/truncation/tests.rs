//! What every rule keeps.

use proptest::prelude::*;

use super::super::Distribution;
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
        let rules = [nucleus, min_p, typical, epsilon_cutoff, eta_cutoff];
        for cut in rules.map(|rule| rule(distribution.clone(), p)) {
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
    let distribution = Distribution::from_weights([(0, 0.5), (1, 0.25), (2, 0.125), (3, 0.125)]);
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
