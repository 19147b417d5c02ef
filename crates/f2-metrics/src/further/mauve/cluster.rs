//! k-means as in faiss: it starts from the same points, refills empty clusters by splitting others
//! with the same random draws, and keeps the attempt with the smallest sum of squares.
//!
//! Distances are summed in a different order than in faiss, so a point that is equidistant from two
//! centres to seven digits may be assigned to the other one.

use rayon::prelude::*;

use super::Features;
use super::mersenne::MersenneTwister;

/// The difference between the seeds of successive attempts.
const NEXT_ATTEMPT: u64 = 15_486_557;
/// The random seed for refilling empty clusters.
const SPLIT_SEED: u32 = 1234;
/// The relative shift that separates the two halves of a split cluster.
const APART: f32 = 1.0 / 1024.0;
/// Independent partial sums of squares.
const LANES: usize = 16;

pub(super) struct Clustering {
    pub(super) clusters: usize,
    pub(super) attempts: usize,
    pub(super) steps: usize,
    pub(super) seed: u64,
}

impl Clustering {
    /// The cluster of each point.
    pub(super) fn labels(&self, points: &Features) -> Vec<u32> {
        if points.count() <= self.clusters {
            // No more points than clusters: each has its own.
            return (0..points.count() as u32).collect();
        }
        let mut best: Option<(f32, Vec<f32>)> = None;
        for attempt in 0..self.attempts.max(1) as u64 {
            let seed = self.seed.wrapping_add(1 + attempt * NEXT_ATTEMPT);
            let found = self.attempt(points, seed as u32);
            if best.as_ref().is_none_or(|best| found.0 < best.0) {
                best = Some(found);
            }
        }
        let (_, centres) = best.expect("there was an attempt");
        nearest(points, &centres).0
    }

    /// Returns the sum of squares of the last step, and the centres after it.
    fn attempt(&self, points: &Features, seed: u32) -> (f32, Vec<f32>) {
        let begin = permutation(points.count(), seed);
        let point = |number: usize| &points.rows[number * points.width..][..points.width];
        let mut centres: Vec<f32> =
            begin[..self.clusters].iter().flat_map(|number| point(*number)).copied().collect();
        let (mut labels, mut squares) = (Vec::new(), 0.0);
        for _ in 0..self.steps.max(1) {
            let (new, sum) = nearest(points, &centres);
            squares = sum;
            // The centres depend only on the labels, so all further steps would be the same.
            if new == labels {
                break;
            }
            labels = new;
            centres = self.centres(points, &labels);
        }
        (squares, centres)
    }

    /// The mean of each cluster's points; an empty cluster gets half of another.
    fn centres(&self, points: &Features, labels: &[u32]) -> Vec<f32> {
        let width = points.width;
        let mut centres = vec![0.0_f32; self.clusters * width];
        let mut sizes = vec![0.0_f32; self.clusters];
        for (point, &label) in points.points().zip(labels) {
            sizes[label as usize] += 1.0;
            let centre = &mut centres[label as usize * width..][..width];
            centre.iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
        }
        for (centre, size) in centres.chunks_exact_mut(width).zip(&sizes) {
            if *size > 0.0 {
                let share = 1.0 / size;
                centre.iter_mut().for_each(|sum| *sum *= share);
            }
        }
        self.fill_empty(&mut centres, &mut sizes, points.count(), width);
        centres
    }

    fn fill_empty(&self, centres: &mut [f32], sizes: &mut [f32], points: usize, width: usize) {
        let mut random = MersenneTwister::new(SPLIT_SEED);
        for empty in 0..self.clusters {
            if sizes[empty] != 0.0 {
                continue;
            }
            let mut full = 0;
            loop {
                let chance =
                    (f64::from(sizes[full]) - 1.0) as f32 / (points - self.clusters) as f32;
                if (random.next() as f32 / u32::MAX as f32) < chance {
                    break;
                }
                full = (full + 1) % self.clusters;
            }
            centres.copy_within(full * width..(full + 1) * width, empty * width);
            for at in 0..width {
                let up = if at % 2 == 0 { APART } else { -APART };
                centres[empty * width + at] *= 1.0 + up;
                centres[full * width + at] *= 1.0 - up;
            }
            sizes[empty] = sizes[full] / 2.0;
            sizes[full] -= sizes[empty];
        }
    }
}

/// The numbers below `count` in random order, by a Fisher–Yates shuffle from the start.
fn permutation(count: usize, seed: u32) -> Vec<usize> {
    let mut random = MersenneTwister::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for place in 0..count.saturating_sub(1) {
        let other = place + random.next() as usize % (count - place);
        order.swap(place, other);
    }
    order
}

/// The nearest centre of each point (the first in case of a tie), and the sum of the squared
/// distances.
fn nearest(points: &Features, centres: &[f32]) -> (Vec<u32>, f32) {
    let width = points.width;
    let nearest = |point: &[f32]| {
        let mut best = (0, f32::INFINITY);
        for (number, centre) in (0..).zip(centres.chunks_exact(width)) {
            let distance = distance(point, centre);
            if distance < best.1 {
                best = (number, distance);
            }
        }
        best
    };
    let found: Vec<(u32, f32)> = points.rows.par_chunks_exact(width).map(nearest).collect();
    let sum = found.iter().map(|(_, distance)| distance).sum();
    (found.into_iter().map(|(label, _)| label).collect(), sum)
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (ones, ones_rest) = one.as_chunks::<LANES>();
    let (others, others_rest) = other.as_chunks::<LANES>();
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..LANES {
            let apart = one[lane] - other[lane];
            sums[lane] += apart * apart;
        }
    }
    let rest = ones_rest.iter().zip(others_rest).map(|(one, other)| (one - other) * (one - other));
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}
