//! Sums and inner products of vectors.

use super::{Arithmetic, LANES, reduce, vectorised};

vectorised! {
    /// `Σ a b`.
    pub(in crate::cpu) fn dot(a: &[f32], b: &[f32]) -> f32 = dot_kernel
}

#[inline(always)]
pub(in crate::cpu) fn dot_kernel<A: Arithmetic>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let ((a_blocks, a_rest), (b_blocks, b_rest)) =
        (a.as_chunks::<LANES>(), b[..a.len()].as_chunks::<LANES>());
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            lanes[lane] = A::mul_add(a[lane], b[lane], lanes[lane]);
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[lane] = A::mul_add(*a, *b, lanes[lane]);
    }
    reduce(lanes)
}

vectorised! {
    /// `to += from`.
    pub(in crate::cpu) fn add(from: &[f32], to: &mut [f32]) = add_kernel
}

#[inline(always)]
fn add_kernel<A: Arithmetic>(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
