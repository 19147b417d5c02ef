//! The global norm and AdamW.

use std::ops::Range;

use super::memory::{Buffer, Weights};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{AdamW, Decay, Moments, NORM_BLOCK, Optimiser};

/// Blocks that share the sum of squares of a norm; their sums are added in a fixed order.
const NORM_BLOCKS: usize = 1024;

/// Groups of four parameters per thread of AdamW.
const QUADS: usize = 8;

kernels! {
    SQUARE_SUMS: (usize, Address, Address) = square_sums;
    BLOCK_SQUARE_SUMS: (usize, Address, Address) = block_square_sums;
    NORM_OF_SUMS: (usize, Address, Address) = norm_of_sums;
    FINISH_NORM: (usize, Address, Address) = finish_norm;
    ADAMW: (usize, usize, Address, Address, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, Address, Address, Address, Address, Address) = adamw;
}

impl<P: Precision> Optimiser for Cuda<P> {
    fn global_norm(&self, gradients: &Buffer<f32>, norm: &mut Buffer<f32>) {
        let Some(partial) = self.scratch(NORM_BLOCKS * size_of::<f64>()) else { return };
        let quads = gradients.len().div_ceil(4);
        let arguments = (quads, gradients.at(0), partial);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(SQUARE_SUMS, Grid::blocks(NORM_BLOCKS, 512), arguments) };
        let arguments = (NORM_BLOCKS, partial, norm.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(FINISH_NORM, Grid::blocks(1, 1024), arguments) };
    }

    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer<f32>,
        weights: &mut Weights<P>,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer<f32>,
    ) {
        let all = 0..gradients.len();
        self.adamw_piece(settings, decayed, norm, all, 0, weights, moments, gradients);
    }

    fn square_sums(
        &self,
        range: Range<usize>,
        gradients: &Buffer<f32>,
        sums: &mut Buffer<f32>,
        at: usize,
    ) {
        let blocks = range.len().div_ceil(NORM_BLOCK);
        assert!(range.end <= gradients.len() && at + 2 * blocks <= sums.len(), "{range:?}");
        let arguments = (range.len(), gradients.at(range.start), sums.at(at));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(BLOCK_SQUARE_SUMS, Grid::blocks(blocks, 256), arguments) };
    }

    fn norm_of_sums(&self, blocks: usize, sums: &Buffer<f32>, norm: &mut Buffer<f32>) {
        assert!(2 * blocks <= sums.len(), "{blocks} sums");
        let arguments = (blocks, sums.at(0), norm.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(NORM_OF_SUMS, Grid::blocks(1, 1024), arguments) };
    }

    fn adamw_piece(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer<f32>,
        piece: Range<usize>,
        at: usize,
        weights: &mut Weights<P>,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer<f32>,
    ) {
        let decayed = within(decayed, &piece);
        let starts = decayed.iter().map(|range| range.start as u64);
        let bounds: Vec<u64> = starts.chain(decayed.iter().map(|range| range.end as u64)).collect();
        let Some(bounds) = self.lists.load(&self.stream, &bounds) else { return };
        let AdamW { learning_rate, beta1, beta2, weight_decay, .. } = settings;
        let correction = |beta: f64| 1.0 - beta.powf(settings.update as f64);
        let decoupled = settings.decay == Decay::Decoupled;
        let penalty = if decoupled { 0.0 } else { weight_decay };
        let keep = if decoupled { 1.0 - learning_rate * weight_decay } else { 1.0 };
        let quads = piece.len().div_ceil(4);
        let rounded = weights.rounded.as_ref().map_or(0, |rounded| rounded.at(piece.start));
        // SAFETY: the operation's buffers have these sizes; pieces begin and end at multiples of
        // four, and buffers end there.
        unsafe {
            self.launch(
                ADAMW,
                Grid::items(quads.div_ceil(QUADS)),
                (
                    quads,
                    decayed.len(),
                    bounds,
                    norm.at(0),
                    settings.clip as f32,
                    penalty as f32,
                    keep as f32,
                    beta1 as f32,
                    (1.0 - beta1) as f32,
                    beta2 as f32,
                    (1.0 - beta2) as f32,
                    (learning_rate / correction(beta1)) as f32,
                    (1.0 / correction(beta2).sqrt()) as f32,
                    settings.epsilon as f32,
                    weights.values.at(piece.start),
                    moments.first.at(at),
                    moments.second.at(at),
                    gradients.at(at),
                    rounded,
                ),
            );
        }
    }
}

/// The parts of ascending ranges that lie in a piece, relative to its start.
fn within(ranges: &[Range<usize>], piece: &Range<usize>) -> Vec<Range<usize>> {
    let clamp = |place: usize| place.clamp(piece.start, piece.end) - piece.start;
    let cut = ranges.iter().map(|range| clamp(range.start)..clamp(range.end));
    cut.filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_is_counted_from_the_start_of_a_piece() {
        let decayed = [0..20, 32..40, 48..60];
        assert_eq!(within(&decayed, &(0..60)), decayed);
        assert_eq!(within(&decayed, &(16..52)), [0..4, 16..24, 32..36]);
        assert!(within(&decayed, &(20..32)).is_empty());
    }
}
