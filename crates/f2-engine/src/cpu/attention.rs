//! Causal attention, in strips of queries.
//!
//! A strip's scores fit the cache: they are computed, turned into probabilities, used and
//! forgotten. The backward pass computes them again from the kept log-sums.

use super::dot::dot;
use super::product::{Matrix, Write, product};
use super::scratch::with_scratch;
use super::shared::Shared;
use super::simd::{self, Arithmetic, exp, maximum, vectorised};
use super::threads::Threads;
use crate::{Heads, Sequences};

/// Queries of a strip.
const STRIP: usize = 64;

/// One head of one sequence: where its rows lie in the batch.
#[derive(Clone, Copy)]
struct Head {
    first_position: usize,
    length: usize,
    column: usize,
    width: usize,
    total: usize,
}

impl Head {
    fn of(sequences: Sequences, heads: Heads, task: usize) -> Self {
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

    /// Part 0, 1 or 2 of `qkv`, from this row of the sequence on.
    fn part(self, qkv: &[f32], part: usize, row: usize) -> Matrix<'_> {
        let start = (self.first_position + row) * 3 * self.total + part * self.total + self.column;
        Matrix::rows(&qkv[start..], 3 * self.total)
    }

    /// Rows of a `[positions, width]` matrix, from this one of the sequence on.
    fn rows(self, matrix: &[f32], row: usize) -> Matrix<'_> {
        let start = (self.first_position + row) * self.total + self.column;
        Matrix::rows(&matrix[start..], self.total)
    }
}

/// `out` and `log_sums` of all heads.
pub(super) fn attention(
    threads: &Threads,
    sequences: Sequences,
    heads: Heads,
    qkv: &[f32],
    out: &mut [f32],
    log_sums: &mut [f32],
) {
    let out = Shared::new(out);
    let log_sums = &mut log_sums[..heads.count * sequences.positions()];
    threads.zip_chunks([(log_sums, sequences.length)], |task, [log_sums]| {
        let head = Head::of(sequences, heads, task);
        with_scratch([STRIP * head.length], |[scores]| {
            for start in (0..head.length).step_by(STRIP) {
                let rows = STRIP.min(head.length - start);
                forward_strip(head, start, qkv, scores, &out, &mut log_sums[start..start + rows]);
            }
        });
    });
}

fn forward_strip(
    head: Head,
    start: usize,
    qkv: &[f32],
    scores: &mut [f32],
    out: &Shared<'_>,
    log_sums: &mut [f32],
) {
    let rows = log_sums.len();
    let keys = start + rows;
    score_strip(head, start, rows, qkv, scores);
    let mut sums = [0.0; STRIP];
    for (row, scores) in scores.chunks_mut(keys).take(rows).enumerate() {
        let (seen, unseen) = scores.split_at_mut(start + row + 1);
        unseen.fill(0.0);
        (log_sums[row], sums[row]) = exponentials(head.scale(), seen);
    }
    let offset = (head.first_position + start) * head.total + head.column;
    let (scores, values) = (Matrix::rows(scores, keys), head.part(qkv, 2, 0));
    let dims = [rows, head.width, keys];
    // SAFETY: these rows of these columns belong to this head's task.
    unsafe { out.product(offset, dims, scores, values, head.total, Write::Overwrite) };
    for (row, sum) in sums.iter().enumerate().take(rows) {
        // SAFETY: as above.
        let out = unsafe { out.piece(offset + row * head.total, head.width) };
        for out in out {
            *out /= sum;
        }
    }
}

/// `scores: [rows, start + rows]`, not yet scaled.
fn score_strip(head: Head, start: usize, rows: usize, qkv: &[f32], scores: &mut [f32]) {
    let keys = start + rows;
    let (queries, key_rows) = (head.part(qkv, 0, start), head.part(qkv, 1, 0).transposed());
    let dims = [rows, keys, head.width];
    product(dims, queries, key_rows, scores, keys, Write::Overwrite);
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

/// What the backward pass reads.
pub(super) struct Backward<'a> {
    pub(super) qkv: &'a [f32],
    pub(super) out: &'a [f32],
    pub(super) log_sums: &'a [f32],
    pub(super) d_out: &'a [f32],
}

pub(super) fn attention_backward(
    threads: &Threads,
    sequences: Sequences,
    heads: Heads,
    from: &Backward<'_>,
    d_qkv: &mut [f32],
) {
    let d_qkv = Shared::new(d_qkv);
    threads.each(sequences.count * heads.count, |task| {
        let head = Head::of(sequences, heads, task);
        let log_sums = &from.log_sums[task * head.length..][..head.length];
        let strip = STRIP * head.length;
        with_scratch([strip, strip], |[probabilities, d_scores]| {
            // From the last strip, which sees every key: it writes, the others add.
            for start in (0..head.length).step_by(STRIP).rev() {
                let write =
                    if start + STRIP >= head.length { Write::Overwrite } else { Write::Add };
                let strip = BackwardStrip { head, start, log_sums, write };
                strip.run(from, probabilities, d_scores, &d_qkv);
            }
        });
    });
}

struct BackwardStrip<'a> {
    head: Head,
    start: usize,
    log_sums: &'a [f32],
    write: Write<'a>,
}

impl BackwardStrip<'_> {
    fn run(
        &self,
        from: &Backward<'_>,
        probabilities: &mut [f32],
        d_scores: &mut [f32],
        d_qkv: &Shared<'_>,
    ) {
        let (head, start) = (self.head, self.start);
        let rows = STRIP.min(head.length - start);
        let keys = start + rows;
        score_strip(head, start, rows, from.qkv, probabilities);
        let (d_out, values) = (head.rows(from.d_out, start), head.part(from.qkv, 2, 0));
        let dims = [rows, keys, head.width];
        product(dims, d_out, values.transposed(), d_scores, keys, Write::Overwrite);
        for row in 0..rows {
            let seen = row * keys..row * keys + start + row + 1;
            let unseen = seen.end..(row + 1) * keys;
            probabilities[unseen.clone()].fill(0.0);
            d_scores[unseen].fill(0.0);
            let place = (head.first_position + start + row) * head.total + head.column;
            let place = place..place + head.width;
            let delta = dot(&from.out[place.clone()], &from.d_out[place]);
            let log_sum = self.log_sums[start + row];
            let (p, d) = (&mut probabilities[seen.clone()], &mut d_scores[seen]);
            score_gradients(head.scale(), log_sum, delta, p, d);
        }
        let (probabilities, d_scores) =
            (Matrix::rows(probabilities, keys), Matrix::rows(d_scores, keys));
        let (queries, key_rows) = (head.part(from.qkv, 0, start), head.part(from.qkv, 1, 0));
        let place = |part: usize, row: usize| {
            (head.first_position + row) * 3 * head.total + part * head.total + head.column
        };
        let stride = 3 * head.total;
        let by_query = [rows, head.width, keys];
        let by_key = [keys, head.width, rows];
        // SAFETY: this sequence's rows of this head's columns belong to its task.
        unsafe {
            d_qkv.product(place(0, start), by_query, d_scores, key_rows, stride, Write::Overwrite);
            d_qkv.product(place(1, 0), by_key, d_scores.transposed(), queries, stride, self.write);
            d_qkv.product(
                place(2, 0),
                by_key,
                probabilities.transposed(),
                d_out,
                stride,
                self.write,
            );
        }
    }
}

vectorised! {
    /// Turns scores into probabilities and `d` from their gradient into that of the scores.
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
