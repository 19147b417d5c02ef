//! Linear layers with bias, and GELU after or before them.

use super::add::add;
use super::gelu::{gelu, gelu_backward};
use super::product::{Matrix, Write, parallel_product};
use super::scratch::with_scratch;
use super::threads::Threads;
use crate::Linear;

/// Rows one task works on.
const BLOCK: usize = 64;

pub(super) fn linear(
    threads: &Threads,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    let (inputs, outputs) = (linear.inputs(), linear.outputs());
    let weight = Matrix::rows(&weights[linear.weight.range()], inputs).transposed();
    let (dims, x) = ([rows, outputs, inputs], Matrix::rows(x, inputs));
    let write = Write::Bias(&weights[linear.bias.range()]);
    parallel_product(threads, dims, x, weight, y, outputs, write);
}

pub(super) fn linear_gelu(
    threads: &Threads,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    before: &mut [f32],
    y: &mut [f32],
) {
    let outputs = linear.outputs();
    let y = &mut y[..rows * outputs];
    self::linear(threads, rows, linear, weights, x, before);
    let block = BLOCK * outputs;
    threads.zip_chunks([(y, block)], |index, [y]| {
        gelu(&before[index * block..][..y.len()], y);
    });
}

pub(super) fn linear_backward(
    threads: &Threads,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    x: &[f32],
    d_y: &[f32],
    d_x: &mut [f32],
    gradients: &mut [f32],
) {
    input_gradient(threads, rows, linear, weights, d_y, d_x);
    parameter_gradients(threads, rows, linear, x, d_y, gradients);
}

pub(super) fn linear_backward_gelu(
    threads: &Threads,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    before: &[f32],
    x: &[f32],
    d_y: &[f32],
    d_before: &mut [f32],
    gradients: &mut [f32],
) {
    input_gradient(threads, rows, linear, weights, d_y, d_before);
    let block = BLOCK * linear.inputs();
    let d_before = &mut d_before[..rows * linear.inputs()];
    threads.zip_chunks([(d_before, block)], |index, [d]| {
        gelu_backward(&before[index * block..][..d.len()], d);
    });
    parameter_gradients(threads, rows, linear, x, d_y, gradients);
}

/// `d_x = d_y · weight`.
fn input_gradient(
    threads: &Threads,
    rows: usize,
    linear: Linear,
    weights: &[f32],
    d_y: &[f32],
    d_x: &mut [f32],
) {
    let (inputs, outputs) = (linear.inputs(), linear.outputs());
    let weight = Matrix::rows(&weights[linear.weight.range()], inputs);
    let d_y = Matrix::rows(d_y, outputs);
    parallel_product(threads, [rows, inputs, outputs], d_y, weight, d_x, inputs, Write::Overwrite);
}

/// `d_weight += d_yᵀ · x`, `d_bias += Σ d_y`.
fn parameter_gradients(
    threads: &Threads,
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
    parallel_product(threads, [outputs, inputs, rows], transposed, x, d_weight, inputs, Write::Add);
    add_columns(threads, rows, d_y, &mut gradients[linear.bias.range()]);
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
