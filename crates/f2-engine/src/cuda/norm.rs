//! Layer norm, and the residual with dropout before it.

use super::column_sums::ColumnSums;
use super::embedding::Mask;
use super::launch::{Grid, arguments};
use super::memory::{Buffer, Weights};
use super::{Cuda, Precision};
use crate::Norm;

/// Blocks that share the rows of a backward pass; each has a share of gain and bias gradients.
const BLOCKS: usize = 264;
/// Rows of wide rows a block sums up.
const SUMMED_ROWS: usize = 32;

/// The kernels for rows of one width.
struct Kernels {
    forward: &'static str,
    residual: &'static str,
    backward: &'static str,
    /// Chunks of 256 columns a lane holds in registers, a warp to a row; none where a block takes
    /// one.
    chunks: Option<usize>,
}

impl Kernels {
    fn of(width: usize) -> Self {
        let (forward, residual, backward, chunks) = match width {
            0..=256 => ("norm_1", "residual_norm_1", "norm_backward_1", Some(1)),
            257..=512 => ("norm_2", "residual_norm_2", "norm_backward_2", Some(2)),
            513..=1024 => ("norm_4", "residual_norm_4", "norm_backward_4", Some(4)),
            _ => ("norm_wide", "residual_norm_wide", "norm_backward_wide", None),
        };
        Self { forward, residual, backward, chunks }
    }

    fn grid(&self, rows: usize) -> Grid {
        if self.chunks.is_some() { Grid::rows(rows) } else { Grid::blocks(rows, 256) }
    }

    fn backward_grid(&self, rows: usize, element: usize) -> Grid {
        self.chunks.map_or(Grid::blocks(rows, 256), |chunks| {
            Grid::blocks(BLOCKS, 256).sharing(backward_room(chunks, element))
        })
    }
}

/// Bytes a block of a backward pass shares. Eight warps have rows on their way, three numbers for each
/// column, as many as `rows_ahead` in norm.cu says; afterwards, or where it is one row, there are
/// sums of columns.
fn backward_room(chunks: usize, element: usize) -> usize {
    let row_each = 8 * 3 * 256 * chunks * element;
    match (72 * 1024 / row_each).min(3) {
        0 | 1 => 8 * 256 * chunks * size_of::<f32>(),
        rows => rows * row_each,
    }
}

/// What a backward pass reads.
pub(super) struct Backward<'a, E> {
    pub(super) x: &'a Buffer<E>,
    pub(super) statistics: &'a Buffer<f32>,
    pub(super) d_normed: &'a Buffer<E>,
}

impl<P: Precision> Cuda<P> {
    pub(super) fn norm_rows(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        normed: &Buffer<P::Element>,
        statistics: &Buffer<f32>,
    ) {
        let width = norm.gain.columns;
        let kernels = Kernels::of(width);
        let (gain, bias) = (weights.value(norm.gain), weights.value(norm.bias));
        let to = (normed.at(0), statistics.at(0));
        let arguments = arguments![rows, width, gain, bias, x.at(0), to.0, to.1];
        self.launch(kernels.forward, kernels.grid(rows), arguments);
    }

    pub(super) fn residual_norm_rows(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        mask: Mask,
        [x, branch, sum, normed]: [&Buffer<P::Element>; 4],
        statistics: &Buffer<f32>,
    ) {
        let width = norm.gain.columns;
        let kernels = Kernels::of(width);
        self.launch(
            kernels.residual,
            kernels.grid(rows),
            arguments![
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
            ],
        );
    }

    /// `d_x += …`; with a residual, `d_branch` gets `d_x` through dropout in the same pass.
    pub(super) fn norm_rows_backward(
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
        self.launch(
            kernels.backward,
            kernels.backward_grid(rows, size_of::<P::Element>()),
            arguments![
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
            ],
        );
        if kernels.chunks.is_none() {
            let (x, statistics) = (from.x.at(0), from.statistics.at(0));
            self.launch(
                "norm_sums_wide",
                Grid::blocks(width.div_ceil(256), 256).by(blocks),
                arguments![rows, width, SUMMED_ROWS, x, statistics, from.d_normed.at(0), partial],
            );
        }
        let to = [norm.gain, norm.bias].map(|parameter| gradients.at(parameter.offset));
        self.add_partial(blocks, [width, width], partial, to);
        if kernels.chunks.is_some() && d_branch != 0 {
            let (of, columns, partial) = (d_branch, width, branch_sums);
            self.leave_sums(ColumnSums { of, rows, columns, blocks, partial });
        }
    }

    /// Adds `partial: [blocks, columns]` to one or two ranges of the gradients.
    pub(super) fn add_partial(
        &self,
        blocks: usize,
        [first, second]: [usize; 2],
        partial: u64,
        [to_first, to_second]: [u64; 2],
    ) {
        let grid = Grid::blocks((first + second).div_ceil(32), 1024);
        let arguments = arguments![blocks, first, second, partial, to_first, to_second];
        self.launch("add_partial", grid, arguments);
    }
}
