//! How fast this machine multiplies and adds.

use std::time::Instant;

use super::product::{Products, resident_flops};

/// Multiply-adds per second times two, from tiles whose operands stay in the first cache, on
/// all threads at once: what no matrix product can pass. The best of a few short rounds.
pub(super) fn measured_peak(Products { threads, precision }: Products<'_>) -> f64 {
    const ROUNDS: usize = 40;
    const REPETITIONS: usize = 1000;
    let round = || {
        let start = Instant::now();
        let flops = resident_flops(precision, 1);
        threads.each(threads.count(), |_| {
            resident_flops(precision, REPETITIONS);
        });
        let total = flops * (REPETITIONS * threads.count()) as f64;
        total / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}
