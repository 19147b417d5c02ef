//! Hill climbing: moves the cuts of a good partition to a local optimum.

use crate::objective::{Objective, TermWeights};

/// How many steps each cut may move at once, to either side.
const REACH: usize = 4;
const PLACES: usize = 2 * REACH + 1;
/// A gain below this is rounding error.
const LEAST_GAIN: f64 = 1e-14;

/// Cuts at which no joint move of a few ranks helps, and their mean efficiency.
pub(super) struct Climbed {
    pub(super) ends: Vec<usize>,
    pub(super) value: f64,
}

/// Moves the cuts uphill until none moves, by steps of an eighth of their rank, a quarter of that,
/// …, one rank: the head is cut between single tokens, the tail between thousands.
///
/// In each move every cut has a few candidate places, and a small dynamic programme finds the best
/// combination: neighbouring cuts can move together even if neither would move alone.
pub(super) fn climb(objective: &Objective, mut ends: Vec<usize>) -> Climbed {
    let mut value = objective.value(&ends);
    let mut halvings = 3;
    while ends.len() > 1 && halvings <= objective.vocabulary().ilog2() + 2 {
        let moved = best_move(objective, &ends, halvings);
        let reached = objective.value(&moved);
        if reached > value + LEAST_GAIN {
            (ends, value) = (moved, reached);
        } else {
            // Four steps of the next size cover one of this size.
            halvings += 2;
        }
    }
    Climbed { ends, value }
}

/// The best path to a place of one cut: its sum of weights, and the place of the previous cut.
#[derive(Clone, Copy)]
struct Arrival {
    sum: f64,
    from: usize,
}

/// The best ends among those that differ from the given ones by at most [`REACH`] steps each.
fn best_move(objective: &Objective, ends: &[usize], halvings: u32) -> Vec<usize> {
    let (inner, vocabulary) = (&ends[..ends.len() - 1], objective.vocabulary());
    let weights = TermWeights::new(ends.len());
    let weight = |start: usize, end: usize| weights.apply(objective.terms(start..end));
    let mut before = vec![(0, 0.0)];
    let mut came_from: Vec<[usize; PLACES]> = Vec::with_capacity(inner.len());
    for &end in inner {
        let places = places(end, halvings, vocabulary);
        let arrivals = places.map(|place| arrive(&before, place, weight));
        before = places.into_iter().zip(arrivals.map(|arrival| arrival.sum)).collect();
        came_from.push(arrivals.map(|arrival| arrival.from));
    }
    let mut place = arrive(&before, vocabulary, weight).from;
    let mut best = ends.to_vec();
    for (end, came_from) in best[..inner.len()].iter_mut().zip(came_from).rev() {
        *end = places(*end, halvings, vocabulary)[place];
        place = came_from[place];
    }
    best
}

/// The candidate places of a cut, its current place in the middle; 0 marks one out of bounds.
fn places(end: usize, halvings: u32, vocabulary: usize) -> [usize; PLACES] {
    let step = (end >> halvings).max(1);
    std::array::from_fn(|place| {
        let moved = (end + place * step).checked_sub(REACH * step);
        moved.filter(|&moved| moved < vocabulary).unwrap_or(0)
    })
}

/// The best path to `end` from the places of the previous cut, each with its sum so far.
fn arrive(before: &[(usize, f64)], end: usize, weight: impl Fn(usize, usize) -> f64) -> Arrival {
    let mut best = Arrival { sum: f64::NEG_INFINITY, from: 0 };
    for (from, &(start, sum_before)) in before.iter().enumerate() {
        if start < end && sum_before > f64::NEG_INFINITY {
            let sum = sum_before + weight(start, end);
            if sum > best.sum {
                best = Arrival { sum, from };
            }
        }
    }
    best
}
