//! Attention to cached keys and values.

use super::reorder::{Move, moves};
use crate::cpu::memory::Buffer;
use crate::cpu::simd::{self, Arithmetic, dot_kernel, maximum, vectorised};
use crate::cpu::threads::{Shared, with_scratch};
use crate::{AttentionHeads, Error, Span};

/// Keys and values, `[layers, 2, sequences, heads, capacity, head width]`: those of one head of one
/// sequence are contiguous.
#[derive(Debug)]
pub struct Cache {
    elements: Buffer,
    sequences: usize,
    capacity: usize,
    pub(super) heads: AttentionHeads,
}

impl Cache {
    pub(super) fn new(
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: AttentionHeads,
    ) -> Result<Self, Error> {
        let len = layers * 2 * sequences * capacity * heads.total_width();
        Ok(Self { elements: Buffer::zeroed(len)?, sequences, capacity, heads })
    }

    /// The number of floats in the keys of one head of one sequence.
    fn head_len(&self) -> usize {
        self.capacity * self.heads.width
    }

    /// The offset of a head's keys (`part` 0) or values (`part` 1).
    fn start(&self, layer: usize, part: usize, sequence: usize, head: usize) -> usize {
        (((layer * 2 + part) * self.sequences + sequence) * self.heads.count + head)
            * self.head_len()
    }

    /// Makes sequence `i` a copy of the first `length` tokens of sequence `parents[i]`, for all `i`
    /// in `parents`. Other sequences do not change.
    pub(super) fn reorder(&mut self, parents: &[u32], length: usize) {
        let moves = moves(parents, self.sequences);
        let (count, head_len) = (self.heads.count, self.head_len());
        let used = length * self.heads.width;
        let mut saved = vec![0.0; used];
        for part in self.elements.chunks_mut(self.sequences * count * head_len) {
            for head in 0..count {
                let start = |sequence: usize| (sequence * count + head) * head_len;
                for step in &moves {
                    match *step {
                        Move::Copy { from, to } => {
                            part.copy_within(start(from)..start(from) + used, start(to));
                        }
                        Move::Save(from) => saved.copy_from_slice(&part[start(from)..][..used]),
                        Move::Restore(to) => part[start(to)..][..used].copy_from_slice(&saved),
                    }
                }
            }
        }
    }

    /// Stores the keys and values of the spans' tokens.
    pub(super) fn store(&mut self, layer: usize, spans: &[Span], qkv: &[f32]) {
        let AttentionHeads { count, width } = self.heads;
        for span in spans {
            for row in 0..span.rows as usize {
                let qkv = &qkv[(span.first_row as usize + row) * 3 * count * width..];
                for part in 0..2 {
                    for head in 0..count {
                        let start = self.start(layer, part, span.sequence as usize, head);
                        let place = start + (span.cached as usize + row) * width;
                        let from = &qkv[((part + 1) * count + head) * width..][..width];
                        self.elements[place..place + width].copy_from_slice(from);
                    }
                }
            }
        }
    }

    /// Attention of one head's new queries, each to all positions up to its own.
    pub(super) fn attend(
        &self,
        layer: usize,
        span: Span,
        head: usize,
        qkv: &[f32],
        out: &Shared<'_>,
    ) {
        let AttentionHeads { count, width } = self.heads;
        let sequence = span.sequence as usize;
        let part = |part: usize| &self.elements[self.start(layer, part, sequence, head)..];
        let (keys, values) = (part(0), part(1));
        let scale = 1.0 / (width as f32).sqrt();
        with_scratch([self.capacity], |[scores]| {
            for row in 0..span.rows as usize {
                let position = span.first_row as usize + row;
                let seen = span.cached as usize + row + 1;
                let query = &qkv[position * 3 * count * width + head * width..][..width];
                let scores = &mut scores[..seen];
                similarities(scale, query, keys, scores);
                // SAFETY: only this task writes to this head's columns of this span's rows.
                let out = unsafe { out.piece((position * count + head) * width, width) };
                average(scores, values, out);
            }
        });
    }
}

vectorised! {
    /// `scores[i] = scale · query · keys[i]`.
    fn similarities(scale: f32, query: &[f32], keys: &[f32], scores: &mut [f32])
    = similarities_kernel
}

#[inline(always)]
fn similarities_kernel<A: Arithmetic>(scale: f32, query: &[f32], keys: &[f32], scores: &mut [f32]) {
    for (score, key) in scores.iter_mut().zip(keys.chunks_exact(query.len())) {
        *score = scale * dot_kernel::<A>(query, key);
    }
}

vectorised! {
    /// `out = Σ softmax(scores) · values`.
    fn average(scores: &mut [f32], values: &[f32], out: &mut [f32]) = average_kernel
}

/// Columns whose sums are kept in registers together.
const TOGETHER: usize = 64;

#[inline(always)]
fn average_kernel<A: Arithmetic>(scores: &mut [f32], values: &[f32], out: &mut [f32]) {
    let largest = maximum(scores);
    let sum = simd::exponentials::<A>(1.0, largest, scores);
    for score in &mut *scores {
        *score /= sum;
    }
    let width = out.len();
    let (blocks, rest) = out.as_chunks_mut::<TOGETHER>();
    let narrow = blocks.len() * TOGETHER;
    for (index, out) in blocks.iter_mut().enumerate() {
        let mut sums = [0.0; TOGETHER];
        for (score, value) in scores.iter().zip(values.chunks_exact(width)) {
            let value = &value[index * TOGETHER..(index + 1) * TOGETHER];
            for column in 0..TOGETHER {
                sums[column] = A::mul_add(*score, value[column], sums[column]);
            }
        }
        *out = sums;
    }
    rest.fill(0.0);
    for (score, value) in scores.iter().zip(values.chunks_exact(width)) {
        for (out, value) in rest.iter_mut().zip(&value[narrow..]) {
            *out = A::mul_add(*score, *value, *out);
        }
    }
}
