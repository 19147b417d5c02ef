//! Token vectors plus learned positions.

mod tokens;

use super::attention::Spans;
use super::dropout::Mask;
use super::memory::{Buffer, Indices, Weights};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{Dropout, Embedding, Embeddings, Error, Sequences, Span};
use tokens::Tokens;

/// Blocks that share the common tokens.
const COMMON_BLOCKS: usize = 132;

kernels! {
    EMBED: (usize, usize, usize, Address, Address, Address, Address, u32, u32, f32, Address) = embed;
    EMBED_SPANS: (usize, usize, Address, Address, Address, Address, Address) = embed_spans;
    EMBED_BACKWARD_RARE: (Address, usize, usize, Address, Address, Address, Address, u32, u32, f32, Address, Address) = embed_backward_rare;
    EMBED_BACKWARD_COMMON: (Address, Address, usize, Address, Address, Address, Address, u32, u32, f32, Address, Address) = embed_backward_common;
    EMBED_BACKWARD_POSITIONS: (usize, usize, usize, Address, u32, u32, f32, Address, Address) = embed_backward_positions;
}

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
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                EMBED,
                Grid::rows(rows),
                (
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
                ),
            );
        }
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
        // The numbers of distinct and of common tokens change with the batch, but the grid of a
        // recorded graph cannot: blocks beyond the last token end at once.
        let most = tokens.capacity().min(embedding.tokens.rows);
        let chunks = width.div_ceil(256);
        let blocks = tokens.common_capacity().min(COMMON_BLOCKS);
        let common = Grid::blocks(blocks, 1024).by(chunks);
        let (counts, ids, order, starts) =
            (tokens.counts(), tokens.ids(), tokens.order(), tokens.starts());
        let Mask { clock, site, threshold, scale } = mask;
        let (from, to) = (d_x.at(0), gradients.at(embedding.tokens.offset));
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                EMBED_BACKWARD_RARE,
                Grid::rows(most),
                (
                    counts,
                    tokens::FEW,
                    width,
                    ids,
                    order,
                    starts,
                    clock,
                    site,
                    threshold,
                    scale,
                    from,
                    to,
                ),
            );
            self.launch(
                EMBED_BACKWARD_COMMON,
                common,
                (
                    counts,
                    tokens.common(),
                    width,
                    ids,
                    order,
                    starts,
                    clock,
                    site,
                    threshold,
                    scale,
                    from,
                    to,
                ),
            );
        }
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                EMBED_BACKWARD_POSITIONS,
                Grid::blocks(sequences.length, 256).by(chunks),
                (
                    sequences.count,
                    sequences.length,
                    width,
                    mask.clock,
                    mask.site,
                    mask.threshold,
                    mask.scale,
                    d_x.at(0),
                    gradients.at(embedding.positions.offset),
                ),
            );
        }
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
        let arguments = (rows, width, by_token, by_place, tokens.start(), spans.places(), x.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(EMBED_SPANS, Grid::rows(rows), arguments) };
    }
}
