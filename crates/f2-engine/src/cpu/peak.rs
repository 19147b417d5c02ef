//! How fast this machine multiplies matrices.

use std::time::Instant;

use super::memory::Buffer;
use super::product::{Matrix, Write, parallel_product};
use super::threads::Threads;
use crate::Error;

/// Floating-point operations per second of the best of a few large products.
pub(super) fn measured_peak(threads: &Threads) -> Result<f64, Error> {
    const SIDE: usize = 1024;
    let lhs = Buffer::zeroed(SIDE * SIDE)?;
    let rhs = Buffer::zeroed(SIDE * SIDE)?;
    let mut out = Buffer::zeroed(SIDE * SIDE)?;
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let (lhs, rhs) = (Matrix::rows(&lhs, SIDE), Matrix::rows(&rhs, SIDE));
        let start = Instant::now();
        parallel_product(threads, [SIDE; 3], lhs, rhs, &mut out, SIDE, Write::Overwrite);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) / best)
}
