//! Token vectors plus learned positions, and the masks of dropout.

use super::cache::Spans;
use super::launch::{Grid, arguments};
use super::memory::{Buffer, Weights};
use super::tokens::{self, Tokens};
use super::upload::Upload;
use super::{Cuda, Precision};
use crate::{Dropout, Embedding, Moment, Sequences};

/// Blocks that share the common tokens.
const COMMON_BLOCKS: usize = 132;

/// Words of a [`Clock`]: seed and first position in two each, and the step.
const CLOCK_WORDS: usize = 5;

/// The moment dropout is drawn at, in the GPU's memory, so that a replayed graph draws anew.
#[derive(Debug)]
pub struct Clock(Upload);

impl Clock {
    pub(super) fn new(stream: &super::stream::Stream) -> Result<Self, crate::Error> {
        Ok(Self(Upload::new(stream, CLOCK_WORDS)?))
    }

    pub(super) fn set(&mut self, moment: Moment) {
        let Moment { seed, step, first_position } = moment;
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let ([a, b], [c, d]) = (halves(seed), halves(first_position));
        self.0.write(CLOCK_WORDS, |words| words.copy_from_slice(&[a, b, c, d, step]));
    }
}

/// One site's dropout, as kernels take it.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    pub(super) clock: u64,
    pub(super) site: u32,
    pub(super) threshold: u32,
    pub(super) scale: f32,
}

impl Mask {
    pub(super) const NONE: Self = Self { clock: 0, site: 0, threshold: 0, scale: 1.0 };

    pub(super) fn of<P: Precision>(dropout: Dropout<'_, Cuda<P>>) -> Self {
        let threshold = (f64::from(dropout.probability) * 65_536.0).round();
        Self {
            clock: dropout.clock.0.at(0),
            site: dropout.site,
            threshold: u32::from(threshold as u16),
            scale: (1.0 / (1.0 - threshold / 65_536.0)) as f32,
        }
    }
}

impl<P: Precision> Cuda<P> {
    pub(super) fn embed_rows(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: &Tokens,
        mask: Mask,
        x: &Buffer<P::Element>,
    ) {
        let rows = sequences.positions();
        let (by_token, by_place) =
            (weights.value(embedding.tokens), weights.value(embedding.positions));
        self.launch(
            "embed",
            Grid::rows(rows),
            arguments![
                rows,
                sequences.length,
                embedding.tokens.columns,
                by_token,
                by_place,
                tokens.ids(),
                mask.clock,
                mask.site,
                mask.threshold,
                mask.scale,
                x.at(0),
            ],
        );
    }

    pub(super) fn embed_rows_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Tokens,
        mask: Mask,
        d_x: &Buffer<P::Element>,
        gradients: &Buffer<f32>,
    ) {
        let width = embedding.tokens.columns;
        // How many tokens are distinct, or common, changes with the batch, the grid of a recorded
        // graph cannot: what lies beyond the last one ends at once.
        let most = tokens.capacity().min(embedding.tokens.rows);
        let chunks = width.div_ceil(256);
        let blocks = tokens.common_capacity().min(COMMON_BLOCKS);
        let common = Grid::blocks(blocks, 1024).by(chunks);
        let kernels = [
            ("embed_backward_rare", Grid::rows(most), tokens::FEW as u64),
            ("embed_backward_common", common, tokens.common()),
        ];
        for (kernel, grid, second) in kernels {
            self.launch(
                kernel,
                grid,
                arguments![
                    tokens.counts(),
                    second,
                    width,
                    tokens.ids(),
                    tokens.order(),
                    tokens.starts(),
                    mask.clock,
                    mask.site,
                    mask.threshold,
                    mask.scale,
                    d_x.at(0),
                    gradients.at(embedding.tokens.offset),
                ],
            );
        }
        self.launch(
            "embed_backward_positions",
            Grid::blocks(sequences.length, 256).by(chunks),
            arguments![
                sequences.count,
                sequences.length,
                width,
                mask.clock,
                mask.site,
                mask.threshold,
                mask.scale,
                d_x.at(0),
                gradients.at(embedding.positions.offset),
            ],
        );
    }

    pub(super) fn embed_span_rows(
        &self,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: u64,
        spans: &Spans,
        x: &Buffer<P::Element>,
    ) {
        let (by_token, by_place) =
            (weights.value(embedding.tokens), weights.value(embedding.positions));
        let (rows, width) = (spans.rows(), embedding.tokens.columns);
        let arguments =
            arguments![rows, width, by_token, by_place, tokens, spans.places(), x.at(0)];
        self.launch("embed_spans", Grid::rows(rows), arguments);
    }
}
