//! Linear layers with bias, and GELU after or before them.
//!
//! GELU is the tanh form: `x/2 · (1 + tanh u)` with `u = √(2/π) · (x + 0.044715 x³)`. Since
//! `(1 + tanh u) / 2` is the logistic function of `2u`, one exponential suffices.

use super::Cpu;
use super::memory::Buffer;
use super::product::{Matrix, Then, Write};
use super::simd::{Arithmetic, add, exp, vectorised};
use super::threads::{Shared, Threads, with_scratch};
use crate::{Linear, Linears};

/// Rows processed by one task.
const BLOCK: usize = 64;

impl Linears for Cpu {
    fn linear(&self, rows: usize, linear: Linear, weights: &Buffer, x: &Buffer, y: &mut Buffer) {
        self.linear_then(rows, linear, weights, x, y, None);
    }

    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        x: &Buffer,
        before: &mut Buffer,
        y: &mut Buffer,
    ) {
        let y = Shared::new(y);
        let then = |first: usize, before: &mut [f32]| {
            // SAFETY: no other call writes to these elements.
            gelu(before, unsafe { y.piece(first, before.len()) });
        };
        self.linear_then(rows, linear, weights, x, before, Some(&then));
    }

    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        x: &Buffer,
        d_y: &Buffer,
        d_x: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        self.input_gradient(rows, linear, weights, d_y, d_x, None);
        self.parameter_gradients(rows, linear, x, d_y, gradients);
    }

    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        before: &Buffer,
        x: &Buffer,
        d_y: &Buffer,
        d_before: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let then = |first: usize, d: &mut [f32]| {
            gelu_backward(&before[first..][..d.len()], d);
        };
        self.input_gradient(rows, linear, weights, d_y, d_before, Some(&then));
        self.parameter_gradients(rows, linear, x, d_y, gradients);
    }
}

impl Cpu {
    fn linear_then(
        &self,
        rows: usize,
        linear: Linear,
        weights: &[f32],
        x: &[f32],
        y: &mut [f32],
        then: Option<Then<'_>>,
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let weight = Matrix::rows(&weights[linear.weight.range()], inputs).transposed();
        let (dims, x) = ([rows, outputs, inputs], Matrix::rows(x, inputs));
        let write = Write::Bias(&weights[linear.bias.range()]);
        self.products().product_then(dims, x, weight, y, write, then);
    }

    /// `d_x = d_y · weight`.
    fn input_gradient(
        &self,
        rows: usize,
        linear: Linear,
        weights: &[f32],
        d_y: &[f32],
        d_x: &mut [f32],
        then: Option<Then<'_>>,
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let weight = Matrix::rows(&weights[linear.weight.range()], inputs);
        let (dims, d_y) = ([rows, inputs, outputs], Matrix::rows(d_y, outputs));
        self.products().product_then(dims, d_y, weight, d_x, Write::Overwrite, then);
    }

    /// `d_weight += d_yᵀ · x`, `d_bias += Σ d_y`.
    fn parameter_gradients(
        &self,
        rows: usize,
        linear: Linear,
        x: &[f32],
        d_y: &[f32],
        gradients: &mut [f32],
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let d_weight = &mut gradients[linear.weight.range()];
        let transposed = Matrix::rows(d_y, outputs).transposed();
        let x = Matrix::rows(x, inputs);
        let dims = [outputs, inputs, rows];
        self.products().product(dims, transposed, x, d_weight, Write::Add);
        add_columns(&self.threads, rows, d_y, &mut gradients[linear.bias.range()]);
    }
}

/// `sums += Σ rows`. Rows are summed in blocks and the blocks in order, so the result does not
/// depend on the number of threads.
fn add_columns(threads: &Threads, rows: usize, matrix: &[f32], sums: &mut [f32]) {
    let width = sums.len();
    let matrix = &matrix[..rows * width];
    let block = BLOCK * width;
    with_scratch([rows.div_ceil(BLOCK) * width], |[partial]| {
        threads.zip_chunks([(&mut *partial, width)], |index, [partial]| {
            partial.fill(0.0);
            let start = index * block;
            for row in matrix[start..matrix.len().min(start + block)].chunks(width) {
                add(row, partial);
            }
        });
        for partial in partial.chunks(width) {
            add(partial, sums);
        }
    });
}

const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
const CUBIC: f32 = 0.044_715;

vectorised! {
    /// `y = gelu(x)`.
    fn gelu(x: &[f32], y: &mut [f32]) = gelu_kernel
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
    fn gelu_backward(before: &[f32], d: &mut [f32]) = gelu_backward_kernel
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
