//! Token vectors plus learned positions.

mod tokens;

use super::attention::Spans;
use super::dropout::Mask;
use super::memory::{Buffer, Indices, Weights};
use super::runtime::{Grid, arguments};
use super::{Cuda, Precision};
use crate::{Dropout, Embedding, Embeddings, Error, Sequences, Span};
use tokens::Tokens;

/// Blocks that share the common tokens.
const COMMON_BLOCKS: usize = 132;

impl<P: Precision> Embeddings for Cuda<P> {
    type Tokens = Tokens;
    type Spans = Spans;

    fn tokens(&self, positions: usize) -> Result<Tokens, Error> {
        Tokens::new(&self.stream, positions)
    }

    fn load_tokens(&self, ids: &[u32], to: &mut Tokens) {
        to.load(ids);
    }

    fn spans(&self, count: usize) -> Result<Spans, Error> {
        Spans::new(&self.stream, count)
    }

    fn load_spans(&self, from: &[Span], to: &mut Spans) {
        to.load(from);
    }

    fn embed(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        x: &mut Buffer<P::Element>,
    ) {
        let mask = Mask::of(dropout);
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

    fn embed_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        d_x: &Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let mask = Mask::of(dropout);
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

    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: &Indices,
        spans: &Spans,
        x: &mut Buffer<P::Element>,
    ) {
        let (by_token, by_place) =
            (weights.value(embedding.tokens), weights.value(embedding.positions));
        let (rows, width) = (spans.rows(), embedding.tokens.columns);
        let arguments =
            arguments![rows, width, by_token, by_place, tokens.start(), spans.places(), x.at(0)];
        self.launch("embed_spans", Grid::rows(rows), arguments);
    }
}
