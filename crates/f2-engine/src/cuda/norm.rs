//! Layer norm, and the residual with dropout before it.

use super::embedding::Mask;
use super::launch::{Grid, arguments};
use super::memory::{Buffer, Weights};
use super::{Cuda, Precision};
use crate::Norm;

/// Blocks that share the rows of a backward pass; each has a share of gain and bias gradients.
const BLOCKS: usize = 264;

/// The kernels by how many chunks of 256 columns a lane holds in registers.
const CHUNKS: [usize; 3] = [1, 2, 4];
const FORWARD: [&str; 3] = ["norm_1", "norm_2", "norm_4"];
const RESIDUAL: [&str; 3] = ["residual_norm_1", "residual_norm_2", "residual_norm_4"];
const BACKWARD: [&str; 3] = ["norm_backward_1", "norm_backward_2", "norm_backward_4"];

/// Columns the registers of a warp hold for rows of `width`.
fn held(width: usize) -> usize {
    256 * CHUNKS.into_iter().find(|&chunks| width <= 256 * chunks).unwrap_or(0)
}

/// What a backward pass reads.
pub(super) struct Backward<'a, E> {
    pub(super) x: &'a Buffer<E>,
    pub(super) statistics: &'a Buffer<f32>,
    pub(super) d_normed: &'a Buffer<E>,
}

impl<P: Precision> Cuda<P> {
    /// The kernel for rows of `width`; none, with a failure noted, for rows too wide.
    fn norm_kernel(&self, names: [&'static str; 3], width: usize) -> Option<&'static str> {
        let fits = CHUNKS.iter().position(|&chunks| width <= 256 * chunks);
        if fits.is_none() {
            let reason = format!("rows of {width} are wider than the 1,024 columns it can hold");
            self.stream.note("layer norm", Err(reason));
        }
        fits.map(|index| names[index])
    }

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
        let Some(kernel) = self.norm_kernel(FORWARD, width) else { return };
        let (gain, bias) = (weights.value(norm.gain), weights.value(norm.bias));
        let to = (normed.at(0), statistics.at(0));
        let arguments = arguments![rows, width, gain, bias, x.at(0), to.0, to.1];
        self.launch(kernel, Grid::rows(rows), arguments);
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
        let Some(kernel) = self.norm_kernel(RESIDUAL, width) else { return };
        self.launch(
            kernel,
            Grid::rows(rows),
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
        let Some(kernel) = self.norm_kernel(BACKWARD, width) else { return };
        let Some(partial) = self.scratch(BLOCKS * 2 * width * size_of::<f32>()) else { return };
        let (mask, d_branch) =
            branch.map_or((Mask::NONE, 0), |(mask, d_branch)| (mask, d_branch.at(0)));
        self.launch(
            kernel,
            Grid::blocks(BLOCKS, 256).sharing(2 * held(width) * size_of::<f32>()),
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
            ],
        );
        let to = [norm.gain, norm.bias].map(|parameter| gradients.at(parameter.offset));
        self.add_partial(BLOCKS, [width, width], partial, to);
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
