//! The tokens that every rule keeps.

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
        let kept = ids(&top_p(distribution.clone(), p));
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
        let shares = RULES.iter().filter(|rule| rule.setting == TruncationSetting::Share);
        let rules = shares.filter_map(|rule| match rule.effect {
            Effect::Probabilities(truncate) => Some(truncate),
            Effect::LogThreshold(_) => None,
        });
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

/// A nucleus of thousands of tokens, which is sorted in several parts, with many ties.
#[test]
fn a_large_nucleus_is_that_of_a_full_sort() {
    let weight = |id: u32| f64::from(1 + id.wrapping_mul(2_654_435_761) % 1009);
    let distribution = Distribution::from_weights((0..5000).map(|id| (id, weight(id))));
    for p in [0.001, 0.3, 0.9, 0.9999] {
        let mut mass = 0.0;
        let needed = distribution.descending().into_iter().take_while(|(_, probability)| {
            let is_needed = mass < p;
            mass += probability;
            is_needed
        });
        let mut expected: Vec<u32> = needed.map(|(id, _)| id).collect();
        expected.sort_unstable();
        let kept = top_p::keep_until((distribution.clone(), 0.0), p, |_, q| -q);
        assert_eq!(ids(&kept), expected, "{p}");
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

/// A setting with which a rule keeps some tokens and drops others.
fn part(rule: &TruncationRule) -> f64 {
    match rule.setting {
        TruncationSetting::Count => 2.0,
        TruncationSetting::Share => 0.5,
        TruncationSetting::Positive => 1.0,
    }
}

/// A device that drew without a rule would keep tokens the rule drops.
#[test]
fn a_device_draws_with_every_rule_or_not_at_all() {
    let logs = || (0_u32..).zip([0.4_f32, 0.3, 0.2, 0.06, 0.04].map(f32::ln));
    let all = Truncations::default();
    for rule in Truncations::rules() {
        let truncations = all.with(rule, part(rule));
        let (kept, before) = (truncations.distribution(logs(), 1.0), all.distribution(logs(), 1.0));
        assert!(kept.entries().len() < before.entries().len(), "{}", rule.key);
        if let Some(sampling) = truncations.on_device(1.0) {
            assert_ne!(Some(sampling), all.on_device(1.0), "{}", rule.key);
        }
    }
    let needs_host = |rule: &&TruncationRule| all.with(rule, part(rule)).on_device(1.0).is_none();
    let on_host = Truncations::rules().iter().filter(needs_host);
    assert_eq!(on_host.map(|rule| rule.key).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn no_two_rules_share_a_name() {
    let names: [fn(&TruncationRule) -> &str; 4] =
        [|rule| rule.key, |rule| rule.name, |rule| rule.field, |rule| rule.help];
    for name in names {
        let mut all: Vec<&str> = Truncations::rules_for_readers().map(name).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Truncations::rules().len(), "{all:?}");
    }
}
