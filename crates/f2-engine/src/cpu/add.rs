//! Sums of rows.

use super::simd::{Arithmetic, vectorised};

vectorised! {
    /// `to += from`.
    pub(super) fn add(from: &[f32], to: &mut [f32]) = add_kernel
}

#[inline(always)]
fn add_kernel<A: Arithmetic>(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
