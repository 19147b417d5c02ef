//! Layer norm, and the residual with dropout before it.

use super::dropout::Mask;
use super::linear::ColumnSums;
use super::memory::{Buffer, Weights};
use super::runtime::{Address, Grid, Kernel, kernels};
use super::{Cuda, Precision};
use crate::{Dropout, Norm, Norms};

/// Blocks that share the rows of a backward pass; each sums gain and bias gradients over its rows.
const BLOCKS: usize = 264;
/// Rows that a block of `norm_sums_wide` sums.
const SUMMED_ROWS: usize = 32;

/// Rows and width, gain and bias, `x`, `normed` and statistics.
type Forward = (usize, usize, Address, Address, Address, Address, Address);
/// Rows and width, gain and bias, dropout's mask, `x`, branch, sum, `normed` and statistics.
type Residual = (
    usize,
    usize,
    Address,
    Address,
    Address,
    u32,
    u32,
    f32,
    Address,
    Address,
    Address,
    Address,
    Address,
);
/// Rows and width, gain, dropout's mask, inputs and outputs.
type BackwardRows = (
    usize,
    usize,
    Address,
    Address,
    u32,
    u32,
    f32,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
);

kernels! {
    NORM_1: Forward = norm_1;
    NORM_2: Forward = norm_2;
    NORM_4: Forward = norm_4;
    NORM_WIDE: Forward = norm_wide;
    RESIDUAL_NORM_1: Residual = residual_norm_1;
    RESIDUAL_NORM_2: Residual = residual_norm_2;
    RESIDUAL_NORM_4: Residual = residual_norm_4;
    RESIDUAL_NORM_WIDE: Residual = residual_norm_wide;
    NORM_BACKWARD_1: BackwardRows = norm_backward_1;
    NORM_BACKWARD_2: BackwardRows = norm_backward_2;
    NORM_BACKWARD_4: BackwardRows = norm_backward_4;
    NORM_BACKWARD_WIDE: BackwardRows = norm_backward_wide;
    NORM_SUMS_WIDE: (usize, usize, usize, Address, Address, Address, Address) = norm_sums_wide;
}

impl<P: Precision> Norms for Cuda<P> {
    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        normed: &mut Buffer<P::Element>,
        statistics: &mut Buffer<f32>,
    ) {
        let width = norm.gain.columns;
        let kernels = Kernels::of(width);
        let (gain, bias) = (weights.value(norm.gain), weights.value(norm.bias));
        let to = (normed.at(0), statistics.at(0));
        let arguments = (rows, width, gain, bias, x.at(0), to.0, to.1);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(kernels.forward, kernels.grid(rows), arguments) };
    }

    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        statistics: &Buffer<f32>,
        d_normed: &Buffer<P::Element>,
        d_x: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let from = Backward { x, statistics, d_normed };
        self.norm_gradients(rows, norm, weights, &from, d_x, None, gradients);
    }

    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        dropout: Dropout<'_, Self>,
        x: &Buffer<P::Element>,
        branch: &Buffer<P::Element>,
        sum: &mut Buffer<P::Element>,
        normed: &mut Buffer<P::Element>,
        statistics: &mut Buffer<f32>,
    ) {
        let mask = Mask::of(dropout);
        let width = norm.gain.columns;
        let kernels = Kernels::of(width);
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                kernels.residual,
                kernels.grid(rows),
                (
                    rows,
                    width,
                    weights.value(norm.gain),
                    weights.value(norm.bias),
                    mask.clock,
                    mask.site,
                    mask.threshold,
                    mask.scale,
                    x.at(0),
                    branch.at(0),
                    sum.at(0),
                    normed.at(0),
                    statistics.at(0),
                ),
            );
        }
    }

    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        dropout: Dropout<'_, Self>,
        sum: &Buffer<P::Element>,
        statistics: &Buffer<f32>,
        d_normed: &Buffer<P::Element>,
        d_sum: &mut Buffer<P::Element>,
        d_branch: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let from = Backward { x: sum, statistics, d_normed };
        let branch = Some((Mask::of(dropout), &*d_branch));
        self.norm_gradients(rows, norm, weights, &from, d_sum, branch, gradients);
    }
}

/// The kernels for rows of one width.
struct Kernels {
    forward: Kernel<Forward>,
    residual: Kernel<Residual>,
    backward: Kernel<BackwardRows>,
    /// Chunks of 256 columns that a warp holds in registers, one row per warp; `None` with one row
    /// per block.
    chunks: Option<usize>,
}

impl Kernels {
    fn of(width: usize) -> Self {
        let (forward, residual, backward, chunks) = match width {
            0..=256 => (NORM_1, RESIDUAL_NORM_1, NORM_BACKWARD_1, Some(1)),
            257..=512 => (NORM_2, RESIDUAL_NORM_2, NORM_BACKWARD_2, Some(2)),
            513..=1024 => (NORM_4, RESIDUAL_NORM_4, NORM_BACKWARD_4, Some(4)),
            _ => (NORM_WIDE, RESIDUAL_NORM_WIDE, NORM_BACKWARD_WIDE, None),
        };
        Self { forward, residual, backward, chunks }
    }

    fn grid(&self, rows: usize) -> Grid {
        if self.chunks.is_some() { Grid::rows(rows) } else { Grid::blocks(rows, 256) }
    }

    fn backward_grid(&self, rows: usize, element: usize) -> Grid {
        self.chunks.map_or(Grid::blocks(rows, 256), |chunks| {
            Grid::blocks(BLOCKS, 256).sharing(backward_shared_bytes(chunks, element))
        })
    }
}

/// Bytes of shared memory of a block of a backward pass. Each of eight warps has as many rows in
/// flight as `rows_ahead` in norm.cu returns, three numbers per column; afterwards, or with a
/// single row, it holds sums of columns.
fn backward_shared_bytes(chunks: usize, element: usize) -> usize {
    let row_each = 8 * 3 * 256 * chunks * element;
    match (72 * 1024 / row_each).min(3) {
        0 | 1 => 8 * 256 * chunks * size_of::<f32>(),
        rows => rows * row_each,
    }
}

/// The inputs of a backward pass.
struct Backward<'a, E> {
    x: &'a Buffer<E>,
    statistics: &'a Buffer<f32>,
    d_normed: &'a Buffer<E>,
}

impl<P: Precision> Cuda<P> {
    /// `d_x += …`; with a residual, `d_branch` gets `d_x` through dropout in the same pass.
    fn norm_gradients(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        from: &Backward<'_, P::Element>,
        d_x: &Buffer<P::Element>,
        branch: Option<(Mask, &Buffer<P::Element>)>,
        gradients: &Buffer<f32>,
    ) {
        let width = norm.gain.columns;
        let kernels = Kernels::of(width);
        let blocks = kernels.chunks.map_or(rows.div_ceil(SUMMED_ROWS), |_| BLOCKS);
        let Some(partial) = self.scratch(blocks * 3 * width * size_of::<f32>()) else { return };
        let branch_sums = partial + (blocks * 2 * width * size_of::<f32>()) as u64;
        let (mask, d_branch) =
            branch.map_or((Mask::NONE, 0), |(mask, d_branch)| (mask, d_branch.at(0)));
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                kernels.backward,
                kernels.backward_grid(rows, size_of::<P::Element>()),
                (
                    rows,
                    width,
                    weights.value(norm.gain),
                    mask.clock,
                    mask.site,
                    mask.threshold,
                    mask.scale,
                    from.x.at(0),
                    from.statistics.at(0),
                    from.d_normed.at(0),
                    d_x.at(0),
                    d_branch,
                    partial,
                    branch_sums,
                ),
            );
        }
        if kernels.chunks.is_none() {
            let (x, statistics) = (from.x.at(0), from.statistics.at(0));
            // SAFETY: the operation's buffers have these sizes.
            unsafe {
                self.launch(
                    NORM_SUMS_WIDE,
                    Grid::blocks(width.div_ceil(256), 256).by(blocks),
                    (rows, width, SUMMED_ROWS, x, statistics, from.d_normed.at(0), partial),
                );
            }
        }
        let to = [norm.gain, norm.bias].map(|parameter| gradients.at(parameter.offset));
        self.add_partial(blocks, [width, width], partial, to);
        if kernels.chunks.is_some() && d_branch != 0 {
            let (of, columns, partial) = (d_branch, width, branch_sums);
            self.leave_sums(ColumnSums { of, rows, columns, blocks, partial });
        }
    }
}
