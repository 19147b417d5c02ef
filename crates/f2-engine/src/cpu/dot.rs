//! Inner products.

use super::simd::{Arithmetic, LANES, reduce, vectorised};

vectorised! {
    /// `Σ a b`.
    pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 = dot_kernel
}

#[inline(always)]
pub(super) fn dot_kernel<A: Arithmetic>(a: &[f32], b: &[f32]) -> f32 {
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
