//! The cuts with the highest mean efficiency.
//!
//! Both terms of Eq. 5 are sums over classes, so for a given K the best cuts follow from a dynamic
//! programme over all ranks, in O(K V²) time. If that is too slow, the programme runs over a few
//! hundred ranks near which the best cuts are likely to be, and hill climbing improves the result.

mod climb;
mod dp;
mod grid;

use std::ops::RangeInclusive;

use rayon::prelude::*;

use crate::objective::Objective;
use crate::{author, greedy};
use climb::climb;
use grid::CutGrid;

/// A vocabulary up to this size may have all its ranks in the grid: two triangles of doubles, at
/// most 72 MB, and a third of at most 36 MB for each K in progress.
const AFFORDABLE_RANKS: usize = 3_000;

/// The most steps of the dynamic programme over all K; one takes about half a nanosecond.
const AFFORDABLE_STEPS: f64 = 2e9;

/// The most classes tried if the cuts come from the search, not the full programme. Counts this
/// even (no token above 1/256 of the mass) gain nothing from classes.
const LARGEST_SEARCHED_K: usize = 512;

/// The largest K tried if none is given: twice the paper's cap, which is binding for most counts.
pub(crate) fn largest_k(vocabulary: usize, cap: usize) -> usize {
    let twice = cap.saturating_mul(2).min(vocabulary);
    if affordable(vocabulary, 1..=twice) { twice } else { twice.min(LARGEST_SEARCHED_K) }
}

/// Whether the dynamic programme over all ranks is affordable for every K of a range.
fn affordable(vocabulary: usize, ks: RangeInclusive<usize>) -> bool {
    let steps = |k: usize| k as f64 * ((vocabulary - k) as f64).powi(2) / 2.0;
    vocabulary <= AFFORDABLE_RANKS && ks.map(steps).sum::<f64>() <= AFFORDABLE_STEPS
}

/// Finds the best cuts for any K of a range.
pub(crate) struct ExactCuts<'a> {
    objective: &'a Objective,
    grid: CutGrid,
    /// Whether the grid holds every rank, so that its best cuts are optimal.
    complete: bool,
}

impl<'a> ExactCuts<'a> {
    pub(crate) fn new(objective: &'a Objective, ks: RangeInclusive<usize>) -> Self {
        if affordable(objective.vocabulary(), ks) {
            Self::complete(objective)
        } else {
            Self::searching(objective)
        }
    }

    fn complete(objective: &'a Objective) -> Self {
        let grid = CutGrid::new(objective, (0..=objective.vocabulary()).collect());
        Self { objective, grid, complete: true }
    }

    fn searching(objective: &'a Objective) -> Self {
        let grid = CutGrid::new(objective, grid::likely_cuts(&objective.sums));
        Self { objective, grid, complete: false }
    }

    /// The ends of the best K classes.
    pub(crate) fn ends(&self, k: usize) -> Vec<usize> {
        let from_grid = dp::best_ends(&self.grid, k);
        if let (true, Some(ends)) = (self.complete, &from_grid) {
            return ends.clone();
        }
        // Climbing from the other methods' cuts, too, ensures that none of them is better.
        let sums = &self.objective.sums;
        let starts = [from_grid, Some(greedy::ends(sums, k)), author::ends(sums, k)];
        let climbed = starts.into_par_iter().flatten().map(|ends| climb(self.objective, ends));
        let best = climbed.max_by(|one, other| one.value.total_cmp(&other.value));
        best.map_or_else(|| greedy::ends(sums, k), |best| best.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankCounts;

    fn zipf(vocabulary: usize, s: f64, q: f64) -> RankCounts {
        let counts = (1..=vocabulary).map(|rank| (1e6 * (rank as f64 + q).powf(-s)) as u64 + 1);
        RankCounts::new(&counts.collect::<Vec<_>>()).unwrap()
    }

    /// For K up to twice the cap, as `exact` tries them if no K is given.
    #[test]
    fn the_search_meets_the_optimum_on_zipfian_counts() {
        for (s, q) in [(0.8, 2.7), (1.0, 0.0), (1.0, 2.7), (1.2, 0.0)] {
            let counts = zipf(700, s, q);
            let objective = Objective::new(&counts);
            let (complete, search) =
                (ExactCuts::complete(&objective), ExactCuts::searching(&objective));
            for k in 1..=2 * counts.class_cap() {
                let best = objective.value(&complete.ends(k));
                let found = objective.value(&search.ends(k));
                assert!((best - found).abs() < 1e-12, "s={s} q={q} K={k}: {found} {best}");
            }
        }
    }

    #[test]
    fn counts_too_even_for_a_grid_are_searched_from_the_other_methods_cuts() {
        let counts = RankCounts::new(&(0..4_000).map(|id| 1_000 + id % 3).collect::<Vec<_>>());
        let objective = Objective::new(&counts.unwrap());
        let ends = ExactCuts::new(&objective, 1_500..=1_500).ends(1_500);
        assert!(objective.value(&ends) >= objective.value(&greedy::ends(&objective.sums, 1_500)));
        assert_eq!((ends.len(), ends.last()), (1_500, Some(&4_000)));
    }
}
