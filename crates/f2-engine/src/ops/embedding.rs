//! A batch's input tokens, as whole sequences or as spans that continue cached ones, and their
//! embedding.

use super::dropout::{Dropout, Dropouts};
use crate::{Error, Parameter};

/// Embeddings of input tokens.
pub trait Embeddings: Dropouts {
    /// Input tokens, with the order in which their gradients are summed.
    type Tokens;
    /// The [`Span`]s of a batch.
    type Spans;

    /// A buffer of `positions` input tokens.
    fn tokens(&self, positions: usize) -> Result<Self::Tokens, Error>;
    /// Writes a batch's input tokens and sorts them for the backward pass.
    fn load_tokens(&self, ids: &[u32], to: &mut Self::Tokens);
    /// A buffer of `count` spans.
    fn spans(&self, count: usize) -> Result<Self::Spans, Error>;
    /// Writes spans; their number becomes `from.len()`.
    fn load_spans(&self, from: &[Span], to: &mut Self::Spans);

    /// Token vectors plus learned positions, with dropout. `x: [positions, width]`.
    fn embed(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Self::Weights,
        tokens: &Self::Tokens,
        dropout: Dropout<'_, Self>,
        x: &mut Self::Activations,
    );
    /// The gradients of token vectors and positions from `d_x: [positions, width]`.
    fn embed_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Self::Tokens,
        dropout: Dropout<'_, Self>,
        d_x: &Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// Embeds new tokens at the positions given by their spans. `x: [tokens, width]`.
    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Self::Weights,
        tokens: &Self::Indices,
        spans: &Self::Spans,
        x: &mut Self::Activations,
    );
}

/// Token vectors and learned positions, summed.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// `[vocabulary, width]`.
    pub tokens: Parameter,
    /// `[longest sequence, width]`.
    pub positions: Parameter,
}

/// A batch of sequences of equal length. Positions are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    /// The number of sequences.
    pub count: usize,
    /// The number of tokens in each.
    pub length: usize,
}

impl Sequences {
    /// The number of positions in the batch.
    pub fn positions(self) -> usize {
        self.count * self.length
    }
}

/// The new tokens of one cached sequence in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The sequence of the cache that they continue.
    pub sequence: u32,
    /// The number of its tokens already in the cache; the first new token has this position.
    pub cached: u32,
    /// The row of the batch where the new tokens begin.
    pub first_row: u32,
    /// The number of new tokens: the whole prompt at first, then one at a time.
    pub rows: u32,
}
