use std::ops::Range;

use crate::RankCounts;
use crate::efficiency::x_ln_x;

/// Sums over any range of ranks in constant time.
pub(crate) struct PrefixSums {
    /// Σ counts of the ranks below each rank; exact.
    mass: Vec<u64>,
    /// Σ c ln c of the ranks below each rank.
    count_log_count: Vec<Compensated>,
}

/// A running sum and what rounding has cut from it. A class in the tail is a small difference of
/// two large sums: plain doubles would leave it few correct digits.
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
        let mut mass = Vec::with_capacity(counts.vocabulary() + 1);
        let mut count_log_count = Vec::with_capacity(counts.vocabulary() + 1);
        let (mut below, mut logs) = (0, Compensated::default());
        for &count in counts.counts() {
            mass.push(below);
            count_log_count.push(logs);
            below += count;
            logs = logs.plus(x_ln_x(count as f64));
        }
        mass.push(below);
        count_log_count.push(logs);
        Self { mass, count_log_count }
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.mass.len() - 1
    }

    pub(crate) fn total(&self) -> u64 {
        self.mass[self.vocabulary()]
    }

    /// The occurrences of the first `ranks` ranks.
    #[inline]
    pub(crate) fn mass_of_first(&self, ranks: usize) -> u64 {
        self.mass[ranks]
    }

    /// The smallest number of leading ranks, more than `above`, of which `holds` is true; all of
    /// them where it never is. `holds` is asked for a mass and must stay true once it is.
    pub(crate) fn first_ranks(&self, above: usize, holds: impl Fn(u64) -> bool) -> usize {
        let rest = &self.mass[above + 1..];
        (above + 1 + rest.partition_point(|&mass| !holds(mass))).min(self.vocabulary())
    }

    /// The occurrences of a range of ranks.
    #[inline]
    pub(crate) fn mass(&self, ranks: Range<usize>) -> u64 {
        self.mass[ranks.end] - self.mass[ranks.start]
    }

    /// Σ c ln c over a range of ranks.
    #[inline]
    pub(crate) fn count_log_count(&self, ranks: Range<usize>) -> f64 {
        self.count_log_count[ranks.end].minus(self.count_log_count[ranks.start])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain doubles of this size are 4 apart.
    #[test]
    fn a_rare_class_keeps_its_digits_below_a_huge_head() {
        let mut by_rank = vec![(1_u64 << 40) - 1; 1000];
        by_rank.extend([7, 5, 3]);
        let sums = PrefixSums::new(&RankCounts::new(&by_rank).unwrap());
        let direct: f64 = [7.0, 5.0, 3.0].into_iter().map(x_ln_x).sum();
        assert_eq!(sums.mass(1000..1003), 15);
        assert!((sums.count_log_count(1000..1003) - direct).abs() < 1e-11);
    }
}
