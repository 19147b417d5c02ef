//! Strips of queries: their scores, probabilities, outputs and gradients.

use crate::cpu::product::{Matrix, Operands, Packed, Precision, Write, packed_product};
use crate::cpu::simd::{self, Arithmetic, dot, exp, maximum, vectorised};
use crate::cpu::threads::Shared;
use crate::{AttentionHeads, Sequences};

/// The maximum number of queries in a strip.
const MOST_ROWS: usize = 64;

/// The number of queries in a strip: whole tiles, but few, so that little is computed beyond the
/// diagonal.
pub(super) fn strip_rows(precision: Precision) -> usize {
    match precision {
        Precision::F32 => 24,
        Precision::Bf16 => 32,
    }
}

/// [`strip_rows`] for the backward pass, which also sums over a strip's queries: that is faster
/// with more of them.
pub(super) fn backward_strip_rows(precision: Precision) -> usize {
    match precision {
        Precision::F32 => 48,
        Precision::Bf16 => 64,
    }
}

/// The location of one head of one sequence in the batch.
#[derive(Clone, Copy)]
pub(super) struct AttentionHead {
    first_position: usize,
    pub(super) length: usize,
    column: usize,
    pub(super) width: usize,
    total: usize,
}

impl AttentionHead {
    pub(super) fn of(sequences: Sequences, heads: AttentionHeads, task: usize) -> Self {
        Self {
            first_position: task % sequences.count * sequences.length,
            length: sequences.length,
            column: task / sequences.count * heads.width,
            width: heads.width,
            total: heads.total_width(),
        }
    }

    fn scale(self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// The queries (0), keys (1) or values (2) of `qkv`, from a row of the sequence on.
    fn part(self, qkv: &[f32], part: usize, row: usize) -> Matrix<'_> {
        let start = (self.first_position + row) * 3 * self.total + part * self.total + self.column;
        Matrix::rows(&qkv[start..], 3 * self.total)
    }

    /// This head's columns of a `[positions, width]` matrix, from a row of the sequence on.
    fn rows(self, matrix: &[f32], row: usize) -> Matrix<'_> {
        let start = (self.first_position + row) * self.total + self.column;
        Matrix::rows(&matrix[start..], self.total)
    }
}

/// A head of `qkv` to be packed for products, and the precision of the packed copies.
#[derive(Clone, Copy)]
pub(super) struct HeadInput<'a> {
    pub(super) head: AttentionHead,
    pub(super) qkv: &'a [f32],
    pub(super) precision: Precision,
}

impl HeadInput<'_> {
    /// Packs a part, `[length, width]`.
    pub(super) fn pack(self, part: usize, panels: &mut [f32]) -> Packed<'_> {
        let AttentionHead { length, width, .. } = self.head;
        Packed::new(self.precision, self.head.part(self.qkv, part, 0), length, width, panels)
    }

    /// Packs the transpose of a part, `[width, length]`.
    pub(super) fn pack_transposed(self, part: usize, panels: &mut [f32]) -> Packed<'_> {
        let AttentionHead { length, width, .. } = self.head;
        let matrix = self.head.part(self.qkv, part, 0).transposed();
        Packed::new(self.precision, matrix, width, length, panels)
    }
}

/// Consecutive queries of a head, each of which sees the keys up to its own.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) head: AttentionHead,
    pub(super) start: usize,
    pub(super) rows: usize,
}

impl Strip {
    fn seen(self) -> usize {
        self.start + self.rows
    }

    pub(super) fn forward(
        self,
        qkv: &[f32],
        keys: Packed<'_>,
        values: Packed<'_>,
        scores: &mut [f32],
        out: &Shared<'_>,
        log_sums: &mut [f32],
    ) {
        let Self { head, start, rows } = self;
        let seen = self.seen();
        let queries = head.part(qkv, 0, start);
        packed_product([rows, seen, head.width], queries, keys, scores, seen);
        let mut sums = [0.0; MOST_ROWS];
        for (row, scores) in scores.chunks_mut(seen).take(rows).enumerate() {
            let (seen, unseen) = scores.split_at_mut(start + row + 1);
            unseen.fill(0.0);
            (log_sums[row], sums[row]) = exponentials(head.scale(), seen);
        }
        let offset = (head.first_position + start) * head.total + head.column;
        let dims = [rows, head.width, seen];
        let scores = Matrix::rows(scores, seen);
        // SAFETY: only this head's task writes to its columns of these rows.
        unsafe { out.packed_product(offset, dims, scores, values, head.total) };
        for (row, sum) in sums.iter().enumerate().take(rows) {
            // SAFETY: as above.
            let out = unsafe { out.piece(offset + row * head.total, head.width) };
            for out in out {
                *out /= sum;
            }
        }
    }
}

vectorised! {
    /// Turns scores into `exp(scale · (score - maximum))`; returns their log-sum and sum.
    fn exponentials(scale: f32, scores: &mut [f32]) -> (f32, f32) = exponentials_kernel
}

#[inline(always)]
fn exponentials_kernel<A: Arithmetic>(scale: f32, scores: &mut [f32]) -> (f32, f32) {
    let largest = maximum(scores) * scale;
    let sum = simd::exponentials::<A>(scale, largest, scores);
    (largest + sum.ln(), sum)
}

/// The inputs of the backward pass.
pub(super) struct Backward<'a> {
    pub(super) qkv: &'a [f32],
    pub(super) out: &'a [f32],
    pub(super) log_sums: &'a [f32],
    pub(super) d_out: &'a [f32],
}

/// A head's packed keys and values.
pub(super) struct KeysAndValues<'a> {
    pub(super) precision: Precision,
    pub(super) keys_transposed: Packed<'a>,
    pub(super) values_transposed: Packed<'a>,
    pub(super) keys: Packed<'a>,
}

impl Strip {
    /// Computes the probabilities and the gradients of the scores, `[rows, seen]` each.
    pub(super) fn scores(
        self,
        from: &Backward<'_>,
        packed: &KeysAndValues<'_>,
        log_sums: &[f32],
        probabilities: &mut [f32],
        d_scores: &mut [f32],
    ) {
        let Self { head, start, rows } = self;
        let seen = self.seen();
        let dims = [rows, seen, head.width];
        let queries = head.part(from.qkv, 0, start);
        packed_product(dims, queries, packed.keys_transposed, probabilities, seen);
        let d_out = head.rows(from.d_out, start);
        packed_product(dims, d_out, packed.values_transposed, d_scores, seen);
        for row in 0..rows {
            let known = row * seen..row * seen + start + row + 1;
            let unknown = known.end..(row + 1) * seen;
            probabilities[unknown.clone()].fill(0.0);
            d_scores[unknown].fill(0.0);
            let place = (head.first_position + start + row) * head.total + head.column;
            let place = place..place + head.width;
            let delta = dot(&from.out[place.clone()], &from.d_out[place]);
            let (p, d) = (&mut probabilities[known.clone()], &mut d_scores[known]);
            score_gradients(head.scale(), log_sums[start + row], delta, p, d);
        }
    }

    /// Computes the gradients of queries, keys and values from those of the scores.
    pub(super) fn propagate(
        self,
        from: &Backward<'_>,
        packed: &KeysAndValues<'_>,
        probabilities: &[f32],
        d_scores: &[f32],
        write: Write<'_>,
        d_qkv: &Shared<'_>,
    ) {
        let Self { head, start, rows } = self;
        let seen = self.seen();
        let place = |part: usize, row: usize| {
            (head.first_position + row) * 3 * head.total + part * head.total + head.column
        };
        let stride = 3 * head.total;
        let (probabilities, d_scores) =
            (Matrix::rows(probabilities, seen), Matrix::rows(d_scores, seen));
        let (queries, d_out) = (head.part(from.qkv, 0, start), head.rows(from.d_out, start));
        let by_query = [rows, head.width, seen];
        let by_key = [seen, head.width, rows];
        // SAFETY: only this task writes to this head's columns of this sequence's rows.
        unsafe {
            d_qkv.packed_product(place(0, start), by_query, d_scores, packed.keys, stride);
            let d_keys = Operands { dims: by_key, lhs: d_scores.transposed(), rhs: queries, write };
            d_qkv.product(packed.precision, place(1, 0), d_keys, stride);
            let lhs = probabilities.transposed();
            let d_values = Operands { dims: by_key, lhs, rhs: d_out, write };
            d_qkv.product(packed.precision, place(2, 0), d_values, stride);
        }
    }
}

vectorised! {
    /// Turns scores into probabilities, and `d` from the gradient of these into that of the scores.
    fn score_gradients(scale: f32, log_sum: f32, delta: f32, scores: &mut [f32], d: &mut [f32])
    = score_gradients_kernel
}

#[inline(always)]
fn score_gradients_kernel<A: Arithmetic>(
    scale: f32,
    log_sum: f32,
    delta: f32,
    scores: &mut [f32],
    d: &mut [f32],
) {
    let d = &mut d[..scores.len()];
    for i in 0..scores.len() {
        let probability = exp::<A>(A::mul_add(scores[i], scale, -log_sum));
        scores[i] = probability;
        d[i] = probability * (d[i] - delta) * scale;
    }
}
