//! Linear layers with bias, and GELU after or before them.

use super::add::add;
use super::gelu::{gelu, gelu_backward};
use super::product::{Matrix, Products, Then, Write};
use super::scratch::with_scratch;
use super::shared::Shared;
use super::threads::Threads;
use crate::Linear;

/// Rows one task works on.
const BLOCK: usize = 64;

pub(super) fn linear(
    products: Products<'_>,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    linear_then(products, rows, linear, weights, x, y, None);
}

pub(super) fn linear_gelu(
    products: Products<'_>,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    before: &mut [f32],
    y: &mut [f32],
) {
    let y = Shared::new(y);
    let then = |first: usize, before: &mut [f32]| {
        // SAFETY: every element comes once.
        gelu(before, unsafe { y.piece(first, before.len()) });
    };
    linear_then(products, rows, linear, weights, x, before, Some(&then));
}

fn linear_then(
    products: Products<'_>,
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
    products.product_then(dims, x, weight, y, write, then);
}

pub(super) fn linear_backward(
    products: Products<'_>,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    d_y: &[f32],
    d_x: &mut [f32],
    gradients: &mut [f32],
) {
    input_gradient(products, rows, linear, weights, d_y, d_x, None);
    parameter_gradients(products, rows, linear, x, d_y, gradients);
}

pub(super) fn linear_backward_gelu(
    products: Products<'_>,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    before: &[f32],
    x: &[f32],
    d_y: &[f32],
    d_before: &mut [f32],
    gradients: &mut [f32],
) {
    let then = |first: usize, d: &mut [f32]| {
        gelu_backward(&before[first..][..d.len()], d);
    };
    input_gradient(products, rows, linear, weights, d_y, d_before, Some(&then));
    parameter_gradients(products, rows, linear, x, d_y, gradients);
}

/// `d_x = d_y · weight`.
fn input_gradient(
    products: Products<'_>,
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
    products.product_then(dims, d_y, weight, d_x, Write::Overwrite, then);
}

/// `d_weight += d_yᵀ · x`, `d_bias += Σ d_y`.
fn parameter_gradients(
    products: Products<'_>,
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
    products.product([outputs, inputs, rows], transposed, x, d_weight, Write::Add);
    add_columns(products.threads, rows, d_y, &mut gradients[linear.bias.range()]);
}

/// `sums += Σ rows`. Blocks of rows first, then the blocks in order: the result does not depend
/// on the number of threads.
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
