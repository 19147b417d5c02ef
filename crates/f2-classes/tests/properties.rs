//! Properties that hold for any counts.

use f2_classes::{FrequencyClasses, Method, RankCounts, mean_efficiency, select};
use proptest::prelude::*;

/// Counts with ties, zeros and very large values; at least one above zero.
fn any_counts() -> impl Strategy<Value = Vec<u64>> {
    let count = prop_oneof![Just(0_u64), 1..4_u64, 1..1_000_u64, 1..1_000_000_000_000_u64];
    prop::collection::vec(count, 1..80)
        .prop_filter("a token was seen", |counts| counts.iter().any(|&count| count > 0))
}

/// Eq. 5 and 6 as printed, on shares.
fn naive_objective(by_rank: &[u64], ends: &[usize]) -> f64 {
    let efficiency = |masses: &[f64]| {
        let sum: f64 = masses.iter().sum();
        if masses.len() == 1 || sum == 0.0 {
            return 1.0;
        }
        let shares = masses.iter().map(|mass| mass / sum).filter(|&share| share > 0.0);
        -shares.map(|share| share * share.ln()).sum::<f64>() / (masses.len() as f64).ln()
    };
    let starts = [0].iter().chain(ends);
    let classes: Vec<Vec<f64>> = starts
        .zip(ends)
        .map(|(&start, &end)| by_rank[start..end].iter().map(|&count| count as f64).collect())
        .collect();
    let masses: Vec<f64> = classes.iter().map(|class| class.iter().sum()).collect();
    let within: f64 = classes.iter().map(|class| efficiency(class)).sum();
    efficiency(&masses) + within / classes.len() as f64
}

proptest! {
    #[test]
    fn ranks_are_a_stable_sort(by_id in any_counts()) {
        let counts = RankCounts::new(&by_id).unwrap();
        let ranked: Vec<u64> = counts.ids().iter().map(|&id| by_id[id as usize]).collect();
        prop_assert_eq!(&ranked, counts.counts());
        for (pair, ids) in counts.counts().windows(2).zip(counts.ids().windows(2)) {
            prop_assert!(pair[0] > pair[1] || (pair[0] == pair[1] && ids[0] < ids[1]));
        }
    }

    #[test]
    fn classes_partition_the_ranks(by_id in any_counts(), unseen in 0..2_u64) {
        let counts = RankCounts::new(&by_id).unwrap().with_unseen(unseen).unwrap();
        for method in Method::ALL {
            let selection = select(&counts, method, None).unwrap();
            let mut next = 0;
            for ranks in selection.classes().ranges() {
                prop_assert_eq!(ranks.start, next);
                prop_assert!(!ranks.is_empty());
                next = ranks.end;
            }
            prop_assert_eq!(next, by_id.len());
        }
    }

    #[test]
    fn every_k_up_to_the_vocabulary_can_be_had(by_id in any_counts()) {
        let counts = RankCounts::new(&by_id).unwrap().with_unseen(1).unwrap();
        for method in Method::ALL {
            for k in [1, by_id.len().div_ceil(2), by_id.len()] {
                prop_assert_eq!(select(&counts, method, Some(k)).unwrap().classes().len(), k);
            }
        }
    }

    #[test]
    fn nothing_beats_exact(by_id in any_counts(), unseen in 0..2_u64) {
        let counts = RankCounts::new(&by_id).unwrap().with_unseen(unseen).unwrap();
        let exact = select(&counts, Method::Exact, None).unwrap();
        for method in Method::ALL {
            let rival = select(&counts, method, None).unwrap();
            prop_assert!(exact.objective() >= rival.objective() - 1e-9, "{}", method);
            for (trial, rival) in exact.curve().iter().skip(rival.curve()[0].k - 1).zip(rival.curve()) {
                prop_assert_eq!(trial.k, rival.k);
                prop_assert!(trial.objective >= rival.objective - 1e-12, "{} {}", method, trial.k);
            }
        }
    }

    /// 1e-9 allows for tokens a trillion times rarer than others.
    #[test]
    fn the_objective_is_the_printed_one(by_id in any_counts(), k in 1..80_usize) {
        let counts = RankCounts::new(&by_id).unwrap();
        let k = k.min(by_id.len());
        for method in [Method::Greedy, Method::Exact, Method::EqualTokens] {
            let selection = select(&counts, method, Some(k)).unwrap();
            let naive = naive_objective(counts.counts(), selection.classes().ends());
            prop_assert!((selection.objective() - naive).abs() < 1e-9);
            prop_assert!((selection.curve()[0].objective - naive).abs() < 1e-9);
            let classes = FrequencyClasses::new(selection.classes().ends().to_vec()).unwrap();
            prop_assert!((mean_efficiency(&counts, &classes) - naive).abs() < 1e-9);
        }
    }
}

/// The ends for all K up to the cap would take 160 GB.
#[test]
fn even_counts_of_a_large_vocabulary_are_cut() {
    let counts = RankCounts::new(&vec![1; 200_000]).unwrap();
    for method in [Method::Greedy, Method::EqualTokens, Method::EqualFrequency] {
        let selection = select(&counts, method, None).unwrap();
        assert_eq!(selection.curve().len(), f2_classes::MOST_CLASSES);
        assert_eq!(selection.classes().vocabulary(), 200_000);
    }
}
