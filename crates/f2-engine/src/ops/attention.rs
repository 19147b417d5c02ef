//! Causal attention, over whole sequences and over cached keys and values.

use super::embedding::{Embeddings, Sequences};
use crate::Error;

/// Causal attention.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Attention: Embeddings {
    /// The keys and values of earlier tokens.
    type Cache;

    /// A cache of `layers` × `sequences` × `capacity` keys and values.
    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: AttentionHeads,
    ) -> Result<Self::Cache, Error>;

    /// Causal attention, scores divided by `√heads.width`. `qkv: [positions, 3 · width]` holds
    /// queries, keys and values of all heads side by side; `out: [positions, width]`;
    /// `log_sums: [heads, positions]` receives the logarithm of each softmax denominator.
    fn attention(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Self::Activations,
        out: &mut Self::Activations,
        log_sums: &mut Self::Floats,
    );
    /// `d_qkv: [positions, 3 · width]` from `d_out: [positions, width]`.
    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Self::Activations,
        out: &Self::Activations,
        log_sums: &Self::Floats,
        d_out: &Self::Activations,
        d_qkv: &mut Self::Activations,
    );

    /// Stores the new tokens' keys and values in the cache's `layer`, then attends to the cache.
    /// `qkv: [tokens, 3 · width]`, `out: [tokens, width]`.
    fn attention_cached(
        &self,
        layer: usize,
        spans: &Self::Spans,
        qkv: &Self::Activations,
        cache: &mut Self::Cache,
        out: &mut Self::Activations,
    );
    /// Makes sequence `i` of the cache a copy of the first `length` tokens of sequence
    /// `parents[i]`, as beam search requires after a step.
    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Self::Cache);
}

/// The heads of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionHeads {
    /// The number of heads.
    pub count: usize,
    /// The width of each head's queries, keys and values.
    pub width: usize,
}

impl AttentionHeads {
    /// The width of all heads together.
    pub fn total_width(self) -> usize {
        self.count * self.width
    }
}
