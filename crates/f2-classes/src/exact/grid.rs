//! Candidate cuts of a large vocabulary.

use crate::objective::{ClassTerms, Objective, TermWeights};
use crate::prefix::PrefixSums;

/// Below this rank every cut is a candidate: classes of the head hold a token or two.
const DENSE_RANKS: usize = 128;
/// Number of cuts spaced evenly on a logarithmic scale of ranks.
const LOG_SPACED: usize = 400;
/// Number of cuts spaced evenly in mass, for counts far from Zipf's law.
const EQUAL_MASS: u64 = 128;

/// Ranks near which the best cuts of a large vocabulary are likely to be; ascending, from 0 to the
/// size of the vocabulary.
pub(super) fn likely_cuts(sums: &PrefixSums) -> Vec<usize> {
    let vocabulary = sums.vocabulary();
    let ratio = (vocabulary as f64).ln() / LOG_SPACED as f64;
    let log_spaced = (0..=LOG_SPACED).map(|step| (ratio * step as f64).exp().round() as usize);
    let equal_mass = (1..EQUAL_MASS).map(|share| {
        let target = u128::from(share) * u128::from(sums.total());
        sums.first_ranks(0, |mass| u128::from(mass) * u128::from(EQUAL_MASS) >= target)
    });
    let mut cuts: Vec<usize> = (0..=DENSE_RANKS).chain(log_spaced).chain(equal_mass).collect();
    cuts.retain(|&cut| cut < vocabulary);
    cuts.push(vocabulary);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Ranks at which classes may be cut, with the terms of every class between two of them.
pub(super) struct CutGrid {
    /// Ascending, from 0 to the size of the vocabulary.
    pub(super) cuts: Vec<usize>,
    /// The terms of the classes from each cut to each later one: a triangle, in row-major order.
    spread: Vec<f64>,
    efficiency: Vec<f64>,
}

impl CutGrid {
    pub(super) fn new(objective: &Objective, cuts: Vec<usize>) -> Self {
        let pairs = cuts.len() * (cuts.len() - 1) / 2;
        let (mut spread, mut efficiency) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        for (place, &start) in cuts.iter().enumerate() {
            for &end in &cuts[place + 1..] {
                let terms = objective.terms(start..end);
                spread.push(terms.spread);
                efficiency.push(terms.efficiency);
            }
        }
        Self { cuts, spread, efficiency }
    }

    /// The weight of every class in Eq. 5 for one K.
    pub(super) fn weigh(&self, k: usize) -> WeighedGrid {
        let weights = TermWeights::new(k);
        let pairs = self.spread.iter().zip(&self.efficiency);
        let triangle = pairs
            .map(|(&spread, &efficiency)| weights.apply(ClassTerms { spread, efficiency }))
            .collect();
        WeighedGrid { cuts: self.cuts.len(), triangle }
    }
}

/// The terms in Eq. 5 of every class between two cuts of a grid.
pub(super) struct WeighedGrid {
    cuts: usize,
    triangle: Vec<f64>,
}

impl WeighedGrid {
    /// The classes that start at cut `start` (an index in the grid) and end at `start` + 1, + 2, …
    #[inline]
    pub(super) fn from(&self, start: usize) -> &[f64] {
        let row = start * (2 * self.cuts - start - 1) / 2;
        &self.triangle[row..row + self.cuts - 1 - start]
    }
}
