//! GELU in its tanh form: `x/2 · (1 + tanh u)` with `u = √(2/π) · (x + 0.044715 x³)`.
//!
//! Since `(1 + tanh u) / 2` is the logistic function of `2u`, one exponential is enough.

use super::simd::{Arithmetic, exp, vectorised};

const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
const CUBIC: f32 = 0.044_715;

vectorised! {
    /// `y = gelu(x)`.
    pub(super) fn gelu(x: &[f32], y: &mut [f32]) = gelu_kernel
}

#[inline(always)]
fn gelu_kernel<A: Arithmetic>(x: &[f32], y: &mut [f32]) {
    let x = &x[..y.len()];
    for i in 0..x.len() {
        y[i] = x[i] * gate::<A>(x[i]);
    }
}

vectorised! {
    /// `d *= gelu'(before)`.
    pub(super) fn gelu_backward(before: &[f32], d: &mut [f32]) = gelu_backward_kernel
}

#[inline(always)]
fn gelu_backward_kernel<A: Arithmetic>(before: &[f32], d: &mut [f32]) {
    let width = d.len();
    let before = &before[..width];
    for i in 0..width {
        let x = before[i];
        let gate = gate::<A>(x);
        let slope = TWICE_ROOT * A::mul_add(3.0 * CUBIC * x, x, 1.0);
        d[i] *= A::mul_add(x * slope, gate * (1.0 - gate), gate);
    }
}

/// `(1 + tanh u) / 2`.
#[inline(always)]
fn gate<A: Arithmetic>(x: f32) -> f32 {
    let twice_u = TWICE_ROOT * x * A::mul_add(CUBIC * x, x, 1.0);
    1.0 / (1.0 + exp::<A>(-twice_u))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::Separate;

    fn reference(x: f64) -> f64 {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
        0.5 * x * (1.0 + u.tanh())
    }

    #[test]
    fn agrees_with_the_definition_and_its_slope() {
        for i in -2000..2000 {
            let x = f64::from(i) * 0.01;
            let (before, mut y, mut d) = ([x as f32], [0.0], [1.0]);
            gelu(&before, &mut y);
            gelu_backward(&before, &mut d);
            let x = f64::from(before[0]);
            let slope = (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6;
            assert!((f64::from(y[0]) - reference(x)).abs() < 1e-6 * x.abs().max(1.0));
            assert!((f64::from(d[0]) - slope).abs() < 2e-6, "{x}: {} {slope}", d[0]);
        }
    }

    #[test]
    fn portable_agrees() {
        let x: Vec<f32> = (0..37).map(|i| i as f32 * 0.3 - 5.0).collect();
        let (mut d, mut portable) = (vec![1.0; 37], vec![1.0; 37]);
        gelu_backward(&x, &mut d);
        gelu_backward_kernel::<Separate>(&x, &mut portable);
        assert!(d.iter().zip(&portable).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
