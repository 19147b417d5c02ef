//! MefMax as implemented by the authors' program.

use crate::efficiency::efficiency;
use crate::prefix::PrefixSums;
use crate::{FrequencyClasses, RankCounts};

/// The rule of the authors' program for a given K: a class ends *before* the token that would lift
/// its mass above the target (after it, if the class would be empty). The target is the remaining
/// mass divided by the number of remaining classes. `None` if no mass is left before the last
/// class.
pub(crate) fn ends(sums: &PrefixSums, k: usize) -> Option<Vec<usize>> {
    let mut ends = Vec::with_capacity(k);
    let mut start = 0;
    for classes_left in (2..=k).rev() {
        let closed = sums.mass_of_first(start);
        let mass_left = u128::from(sums.total() - closed);
        if mass_left == 0 {
            return None;
        }
        let above = |mass: u64| u128::from(mass - closed) * classes_left as u128 > mass_left;
        let with_crossing_token = sums.first_ranks(start, above);
        start = (with_crossing_token - 1).max(start + 1);
        ends.push(start);
    }
    ends.push(sums.vocabulary());
    Some(ends)
}

/// The objective of the authors' program instead of Eq. 5: the product of `U(C)` and the mean of
/// `U(V_i)`, in which the mass of the last class lacks its first token.
pub fn author_score(counts: &RankCounts, classes: &FrequencyClasses) -> f64 {
    let mut masses = Vec::with_capacity(classes.len());
    let mut within = 0.0;
    for ranks in classes.ranges() {
        let members = &counts.counts()[ranks];
        masses.push(members.iter().sum());
        within += efficiency(members);
    }
    if let [_, .., last] = &mut masses[..] {
        *last -= counts.counts()[classes.range(classes.len() - 1).start];
    }
    efficiency(&masses) * within / classes.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(counts: &[u64]) -> PrefixSums {
        PrefixSums::new(&RankCounts::new(counts).unwrap())
    }

    #[test]
    fn a_class_closes_before_the_token_that_is_too_much() {
        // 10 of 34 is above a quarter at once; 9 of 24 above a third; then 5 + 3 fit 15/2? 8 > 7.5.
        assert_eq!(ends(&sums(&[10, 9, 5, 3, 2, 1, 1, 1, 1, 1]), 4), Some(vec![1, 2, 3, 10]));
    }

    #[test]
    fn no_mass_left_means_no_such_classes() {
        assert_eq!(ends(&sums(&[5, 0, 0]), 3), None);
        assert_eq!(ends(&sums(&[5, 0, 0]), 2), Some(vec![1, 3]));
    }
}
