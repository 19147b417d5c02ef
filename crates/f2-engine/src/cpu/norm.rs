//! Layer norm, alone and after a residual connection with dropout.

use super::Cpu;
use super::dropout::Mask;
use super::memory::Buffer;
use super::simd::{Arithmetic, add, sum_by, sum_by_three, vectorised};
use crate::{Dropout, Norm, Norms, Parameter};

/// Rows processed by one task. Sums over rows are taken block by block, so their order does not
/// depend on the number of threads.
const BLOCK: usize = 32;

impl Norms for Cpu {
    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        x: &Buffer,
        normed: &mut Buffer,
        statistics: &mut Buffer,
    ) {
        let scale = Scale::of(norm, weights);
        let width = scale.width();
        let block = BLOCK * width;
        self.threads.zip_chunks(
            [(&mut normed[..rows * width], block), (&mut statistics[..rows * 2], BLOCK * 2)],
            |index, [normed, statistics]| {
                let x = &x[index * block..][..normed.len()];
                for ((x, normed), statistics) in
                    x.chunks(width).zip(normed.chunks_mut(width)).zip(statistics.chunks_mut(2))
                {
                    norm_row(scale, x, normed, statistics);
                }
            },
        );
    }

    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        x: &Buffer,
        statistics: &Buffer,
        d_normed: &Buffer,
        d_x: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let from = Backward { x, statistics, d_normed };
        self.norm_gradients(rows, norm, weights, &from, d_x, None, gradients);
    }

    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        dropout: Dropout<'_, Self>,
        x: &Buffer,
        branch: &Buffer,
        sum: &mut Buffer,
        normed: &mut Buffer,
        statistics: &mut Buffer,
    ) {
        let (scale, mask) = (Scale::of(norm, weights), Mask::of(dropout));
        let width = scale.width();
        let block = BLOCK * width;
        let size = rows * width;
        let (x, branch): (&[f32], &[f32]) = (x, branch);
        self.threads.zip_chunks(
            [
                (&mut sum[..size], block),
                (&mut normed[..size], block),
                (&mut statistics[..rows * 2], BLOCK * 2),
            ],
            |index, [sum, normed, statistics]| {
                let rows = sum
                    .chunks_mut(width)
                    .zip(normed.chunks_mut(width))
                    .zip(statistics.chunks_mut(2));
                for (row, ((sum, normed), statistics)) in (index * BLOCK..).zip(rows) {
                    let place = row * width..(row + 1) * width;
                    mask.add_kept(row, &x[place.clone()], &branch[place], sum);
                    norm_row(scale, sum, normed, statistics);
                }
            },
        );
    }

    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        dropout: Dropout<'_, Self>,
        sum: &Buffer,
        statistics: &Buffer,
        d_normed: &Buffer,
        d_sum: &mut Buffer,
        d_branch: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let from = Backward { x: sum, statistics, d_normed };
        let branch = Some((Mask::of(dropout), &mut **d_branch));
        self.norm_gradients(rows, norm, weights, &from, d_sum, branch, gradients);
    }
}

/// Gain and bias.
#[derive(Clone, Copy)]
struct Scale<'a> {
    gain: &'a [f32],
    bias: &'a [f32],
}

impl<'a> Scale<'a> {
    fn of(norm: Norm, weights: &'a [f32]) -> Self {
        Self { gain: &weights[norm.gain.range()], bias: &weights[norm.bias.range()] }
    }

    fn width(self) -> usize {
        self.gain.len()
    }
}

/// The inputs of a backward pass.
struct Backward<'a> {
    x: &'a [f32],
    statistics: &'a [f32],
    d_normed: &'a [f32],
}

impl Cpu {
    /// `d_x += …`; with a residual, `d_branch` receives `d_x` through dropout in the same pass.
    fn norm_gradients(
        &self,
        rows: usize,
        norm: Norm,
        weights: &[f32],
        from: &Backward<'_>,
        d_x: &mut [f32],
        branch: Option<(Mask, &mut [f32])>,
        gradients: &mut [f32],
    ) {
        let scale = Scale::of(norm, weights);
        let width = scale.width();
        let block = BLOCK * width;
        let d_x = &mut d_x[..rows * width];
        let (mask, d_branch) = match branch {
            Some((mask, d_branch)) => (Some(mask), &mut d_branch[..rows * width]),
            None => (None, &mut [][..]),
        };
        self.with_partial(rows.div_ceil(BLOCK) * 2 * width, |partial| {
            self.threads.zip_chunks(
                [(d_x, block), (d_branch, block), (&mut *partial, 2 * width)],
                |index, [d_x, d_branch, partial]| {
                    partial.fill(0.0);
                    let (d_gain, d_bias) = partial.split_at_mut(width);
                    for (row, d_x) in (index * BLOCK..).zip(d_x.chunks_mut(width)) {
                        let place = row * width..(row + 1) * width;
                        let statistics = [from.statistics[2 * row], from.statistics[2 * row + 1]];
                        let (x, d_normed) = (&from.x[place.clone()], &from.d_normed[place]);
                        backward_row(scale.gain, statistics, x, d_normed, d_x, d_gain, d_bias);
                        if let Some(mask) = mask {
                            let start = (row - index * BLOCK) * width;
                            mask.keep(row, d_x, &mut d_branch[start..start + width]);
                        }
                    }
                },
            );
            add_partial(norm, partial, gradients);
        });
    }
}

/// Adds the blocks' contributions to the gradients of gain and bias, in order.
fn add_partial(norm: Norm, partial: &[f32], gradients: &mut [f32]) {
    let width = norm.gain.columns;
    let mut add_to = |parameter: Parameter, offset: usize| {
        let gradient = &mut gradients[parameter.range()];
        for block in partial.chunks(2 * width) {
            add(&block[offset..offset + width], gradient);
        }
    };
    add_to(norm.gain, 0);
    add_to(norm.bias, width);
}

vectorised! {
    fn norm_row(scale: Scale<'_>, x: &[f32], normed: &mut [f32], statistics: &mut [f32])
    = norm_row_kernel
}

#[inline(always)]
fn norm_row_kernel<A: Arithmetic>(
    scale: Scale<'_>,
    x: &[f32],
    normed: &mut [f32],
    statistics: &mut [f32],
) {
    let width = x.len();
    let mean = sum_by(x, |x| x) / width as f32;
    let variance = sum_by(x, |x| (x - mean) * (x - mean)) / width as f32;
    let reciprocal = 1.0 / (variance + Norm::EPSILON).sqrt();
    statistics[0] = mean;
    statistics[1] = reciprocal;
    let (gain, bias, normed) = (&scale.gain[..width], &scale.bias[..width], &mut normed[..width]);
    for i in 0..width {
        normed[i] = A::mul_add((x[i] - mean) * reciprocal, gain[i], bias[i]);
    }
}

vectorised! {
    fn backward_row(
        gain: &[f32], statistics: [f32; 2], x: &[f32], d_normed: &[f32],
        d_x: &mut [f32], d_gain: &mut [f32], d_bias: &mut [f32],
    ) = backward_row_kernel
}

#[inline(always)]
fn backward_row_kernel<A: Arithmetic>(
    gain: &[f32],
    [mean, reciprocal]: [f32; 2],
    x: &[f32],
    d_normed: &[f32],
    d_x: &mut [f32],
    d_gain: &mut [f32],
    d_bias: &mut [f32],
) {
    let width = x.len();
    let (gain, d_normed) = (&gain[..width], &d_normed[..width]);
    let (d_x, d_gain, d_bias) = (&mut d_x[..width], &mut d_gain[..width], &mut d_bias[..width]);
    let terms = [d_normed, gain, x];
    let mean_d = sum_by_three(terms, |d, gain, _| d * gain) / width as f32;
    let mean_dx =
        sum_by_three(terms, |d, gain, x| d * gain * ((x - mean) * reciprocal)) / width as f32;
    for i in 0..width {
        let standard = (x[i] - mean) * reciprocal;
        d_gain[i] = A::mul_add(d_normed[i], standard, d_gain[i]);
        d_bias[i] += d_normed[i];
        let centred = A::mul_add(d_normed[i], gain[i], -mean_d);
        d_x[i] = A::mul_add(A::mul_add(-standard, mean_dx, centred), reciprocal, d_x[i]);
    }
}
