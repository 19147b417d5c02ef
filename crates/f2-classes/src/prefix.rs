//! Prefix sums over ranks.

use std::ops::Range;

use crate::RankCounts;
use crate::efficiency::x_ln_x;

/// Sums over any range of ranks in constant time.
pub(crate) struct PrefixSums {
    /// The sums over the ranks below each rank, up to and including the end.
    below: Vec<Sums>,
}

/// Both sums side by side, since they are mostly needed together.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Σ c, exact.
    mass: u64,
    /// Σ c ln c.
    count_log_count: Compensated,
}

/// A running sum and its rounding error (compensated summation). A class in the tail is a small
/// difference of two large sums, of which plain doubles would keep few correct digits.
#[derive(Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn plus(self, term: f64) -> Self {
        let sum = self.sum + term;
        let taken = sum - self.sum;
        let lost = (self.sum - (sum - taken)) + (term - taken);
        Self { sum, lost: self.lost + lost }
    }

    #[inline]
    fn minus(self, earlier: Self) -> f64 {
        (self.sum - earlier.sum) + (self.lost - earlier.lost)
    }
}

impl PrefixSums {
    pub(crate) fn new(counts: &RankCounts) -> Self {
        let mut sums = Sums::default();
        let mut below = Vec::with_capacity(counts.vocabulary() + 1);
        below.push(sums);
        for &count in counts.counts() {
            sums.mass += count;
            sums.count_log_count = sums.count_log_count.plus(x_ln_x(count as f64));
            below.push(sums);
        }
        Self { below }
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.below.len() - 1
    }

    pub(crate) fn total(&self) -> u64 {
        self.mass_of_first(self.vocabulary())
    }

    /// The occurrences of the first `ranks` ranks.
    pub(crate) fn mass_of_first(&self, ranks: usize) -> u64 {
        self.below[ranks].mass
    }

    /// The smallest number of leading ranks, greater than `above`, for whose mass `holds` is true,
    /// or all ranks if it never is. `holds` must be monotonic.
    pub(crate) fn first_ranks(&self, above: usize, holds: impl Fn(u64) -> bool) -> usize {
        let rest = &self.below[above + 1..];
        (above + 1 + rest.partition_point(|sums| !holds(sums.mass))).min(self.vocabulary())
    }

    /// The occurrences of a range of ranks, and Σ c ln c over it.
    #[inline]
    pub(crate) fn over(&self, ranks: Range<usize>) -> (u64, f64) {
        let (until, before) = (self.below[ranks.end], self.below[ranks.start]);
        (until.mass - before.mass, until.count_log_count.minus(before.count_log_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles of this size are 4 apart.
    #[test]
    fn a_rare_class_keeps_its_digits_below_a_huge_head() {
        let mut by_rank = vec![(1_u64 << 40) - 1; 1000];
        by_rank.extend([7, 5, 3]);
        let sums = PrefixSums::new(&RankCounts::new(&by_rank).unwrap());
        let direct: f64 = [7.0, 5.0, 3.0].into_iter().map(x_ln_x).sum();
        let (mass, count_log_count) = sums.over(1000..1003);
        assert_eq!(mass, 15);
        assert!((count_log_count - direct).abs() < 1e-11);
    }
}
