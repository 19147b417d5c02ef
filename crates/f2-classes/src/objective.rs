//! The objective of MefMax: mean efficiency (Eq. 5).

use std::ops::Range;

use crate::efficiency::efficiency;
use crate::prefix::PrefixSums;
use crate::{FrequencyClasses, RankCounts};

/// The mean efficiency of classes (Eq. 5): `U(C) + (1/K) Σ U(V_i)`, the efficiency of the classes'
/// masses plus the mean efficiency within them; at most 2. Computed directly from the counts.
pub fn mean_efficiency(counts: &RankCounts, classes: &FrequencyClasses) -> f64 {
    let of_class = |ranks: Range<usize>| efficiency(&counts.counts()[ranks]);
    let within: f64 = classes.ranges().map(of_class).sum();
    class_efficiency(counts, classes) + within / classes.len() as f64
}

/// `U(C)`: how evenly the classes share the mass.
pub(crate) fn class_efficiency(counts: &RankCounts, classes: &FrequencyClasses) -> f64 {
    let masses: Vec<u64> =
        classes.ranges().map(|ranks| counts.counts()[ranks].iter().sum()).collect();
    efficiency(&masses)
}

/// Eq. 5 in constant time per class, for the methods that compare many cuts.
pub(crate) struct Objective {
    pub(crate) sums: PrefixSums,
    /// One over the logarithm of every class size: infinite for one member, 0 is unused.
    inverse_ln_size: Vec<f64>,
    inverse_total: f64,
    ln_total: f64,
}

/// The terms of one class in Eq. 5, before the factors that depend on K.
#[derive(Clone, Copy)]
pub(crate) struct ClassTerms {
    /// −P ln P for the class's share P: its contribution to the entropy of the classes.
    pub(crate) spread: f64,
    /// U(V) of the class.
    pub(crate) efficiency: f64,
}

/// The factors of the two terms of a class in Eq. 5, given the number of classes.
#[derive(Clone, Copy)]
pub(crate) struct TermWeights {
    pub(crate) spread: f64,
    pub(crate) efficiency: f64,
}

impl TermWeights {
    /// For K = 1, U(C) is the constant 1.
    pub(crate) fn new(k: usize) -> Self {
        let spread = if k == 1 { 0.0 } else { 1.0 / (k as f64).ln() };
        Self { spread, efficiency: 1.0 / k as f64 }
    }

    #[inline]
    pub(crate) fn apply(self, terms: ClassTerms) -> f64 {
        self.spread * terms.spread + self.efficiency * terms.efficiency
    }
}

impl Objective {
    pub(crate) fn new(counts: &RankCounts) -> Self {
        let total = counts.total() as f64;
        let inverse_ln_size = (0..=counts.vocabulary()).map(|size| 1.0 / (size as f64).ln());
        Self {
            sums: PrefixSums::new(counts),
            inverse_ln_size: inverse_ln_size.collect(),
            inverse_total: 1.0 / total,
            ln_total: total.ln(),
        }
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.sums.vocabulary()
    }

    /// The terms of the class that holds these ranks.
    #[inline]
    pub(crate) fn terms(&self, ranks: Range<usize>) -> ClassTerms {
        let size = ranks.len();
        let (mass, count_log_count) = self.sums.over(ranks);
        if mass == 0 {
            return ClassTerms { spread: 0.0, efficiency: 1.0 };
        }
        let mass = mass as f64;
        let ln_mass = mass.ln();
        let spread = mass * self.inverse_total * (self.ln_total - ln_mass);
        if size == 1 {
            return ClassTerms { spread, efficiency: 1.0 };
        }
        let entropy = ln_mass - count_log_count / mass;
        ClassTerms { spread, efficiency: entropy * self.inverse_ln_size[size] }
    }

    /// Eq. 5 for classes with these ends.
    pub(crate) fn value(&self, ends: &[usize]) -> f64 {
        let weights = TermWeights::new(ends.len());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let sum: f64 =
            starts.zip(ends).map(|(start, &end)| weights.apply(self.terms(start..end))).sum();
        if ends.len() == 1 { 1.0 + sum } else { sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::efficiency::x_ln_x;

    #[test]
    fn prefix_sums_and_plain_summation_agree() {
        let counts = RankCounts::new(&[900, 340, 77, 20, 20, 3, 1, 0, 0]).unwrap();
        let objective = Objective::new(&counts);
        for ends in [vec![9], vec![1, 9], vec![2, 3, 9], vec![1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            let fast = objective.value(&ends);
            let plain = mean_efficiency(&counts, &FrequencyClasses::new(ends).unwrap());
            assert!((fast - plain).abs() < 1e-13, "{fast} {plain}");
        }
    }

    #[test]
    fn the_logarithm_of_a_share_agrees_with_its_definition() {
        let counts = RankCounts::new(&[30, 10]).unwrap();
        let spread = Objective::new(&counts).terms(0..1).spread;
        assert!((spread + x_ln_x(0.75)).abs() < 1e-15);
    }
}
