//! The softmax over the token vectors of one class, for the positions whose targets are in it, a
//! chunk of positions at a time. The plain softmax is a single class of all tokens.

use super::row::RowTarget;
use super::targets::{OwnedPenalties, Targets};
use crate::cpu::product::{Matrix, Products, Write};
use crate::cpu::simd::add;
use crate::cpu::threads::{Shared, Threads};
use crate::{Head, IGNORED};

/// Rows of logits processed by one task.
const BLOCK: usize = 4;

/// A slice of the output matrix: the token vectors of ids from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Vectors<'a> {
    pub(super) rows: &'a [f32],
    pub(super) width: usize,
    pub(super) first: usize,
}

impl<'a> Vectors<'a> {
    /// The token vectors of a class.
    pub(super) fn of(head: &Head, class: usize, weights: &'a [f32]) -> Self {
        let (members, vectors) = head.part(class);
        let (rows, width) = (&weights[vectors.range()], vectors.columns);
        Self { rows, width, first: members.start }
    }

    pub(super) fn count(self) -> usize {
        self.rows.len() / self.width
    }
}

/// The destination of the gradients.
pub(super) struct Gradients<'a> {
    /// `[positions, width]`.
    pub(super) d_hidden: &'a mut [f32],
    /// Whether to overwrite or add to `d_hidden`.
    pub(super) write: Write<'a>,
    /// `[count, width]`; gradients are added.
    pub(super) d_vectors: &'a mut [f32],
}

/// Calls `each` with the logits of every chunk of a class's positions. If the workspace still holds
/// those of the last chunk, that chunk is processed first and needs no product.
pub(super) fn for_each_chunk(
    products: Products<'_>,
    class: usize,
    vectors: Vectors<'_>,
    targets: &mut Targets,
    hidden: &[f32],
    mut each: impl FnMut(&[u32], &mut Chunk<'_>),
) {
    let (width, count) = (vectors.width, vectors.count());
    let chunks = targets.chunks(class, count);
    let reused = targets.take_logits();
    for index in 0..chunks.len() {
        let place = if reused { chunks.len() - 1 - index } else { index };
        let positions = &targets.order[chunks.clone().nth(place).expect("there are as many")];
        let rows = positions.len();
        let work = &mut targets.workspace;
        let contiguous = positions[rows - 1] as usize - positions[0] as usize == rows - 1;
        let hidden = if contiguous {
            &hidden[positions[0] as usize * width..][..rows * width]
        } else {
            gather(positions, width, hidden, &mut work.hidden);
            &work.hidden[..rows * width]
        };
        let logits = &mut work.logits[..rows * count];
        let (lhs, rhs) = (Matrix::rows(hidden, width), Matrix::rows(vectors.rows, width));
        let dims = [rows, count, width];
        if !(reused && index == 0) {
            products.product(dims, lhs, rhs.transposed(), logits, Write::Overwrite);
        }
        let mut chunk = Chunk {
            hidden,
            logits,
            contiguous,
            d_hidden: &mut work.d_hidden[..rows * width],
            losses: &mut work.losses[..rows * 2],
            batch: Batch {
                ids: &targets.ids,
                weights: &targets.weights,
                penalties: &targets.penalties,
            },
        };
        each(positions, &mut chunk);
    }
}

/// The logits of some positions, and the workspace for processing them.
pub(super) struct Chunk<'a> {
    pub(super) hidden: &'a [f32],
    pub(super) logits: &'a mut [f32],
    contiguous: bool,
    d_hidden: &'a mut [f32],
    pub(super) losses: &'a mut [f32],
    batch: Batch<'a>,
}

#[derive(Clone, Copy)]
struct Batch<'a> {
    ids: &'a [u32],
    weights: &'a [f32],
    penalties: &'a OwnedPenalties,
}

impl<'a> Batch<'a> {
    fn row_target(self, position: u32, first: usize) -> RowTarget<'a> {
        let id = self.ids[position as usize];
        RowTarget {
            column: (id != IGNORED).then(|| id as usize - first),
            weight: self.weights[position as usize],
            candidates: self.penalties.of(position as usize),
            penalty: self.penalties.weight,
            floor: self.penalties.floor,
        }
    }
}

/// Computes the losses of a class's positions and calls `record(position, [likelihood, penalties])`
/// for each.
pub(super) fn loss(
    products: Products<'_>,
    class: usize,
    vectors: Vectors<'_>,
    targets: &mut Targets,
    hidden: &[f32],
    mut record: impl FnMut(usize, [f32; 2]),
) {
    for_each_chunk(products, class, vectors, targets, hidden, |positions, chunk| {
        chunk.each_row(products.threads, positions, vectors, |target, logits| target.loss(logits));
        record_all(positions, chunk.losses, &mut record);
    });
}

/// [`loss`] with gradients.
pub(super) fn loss_backward(
    products: Products<'_>,
    class: usize,
    vectors: Vectors<'_>,
    targets: &mut Targets,
    hidden: &[f32],
    gradients: &mut Gradients<'_>,
    mut record: impl FnMut(usize, [f32; 2]),
) {
    for_each_chunk(products, class, vectors, targets, hidden, |positions, chunk| {
        chunk.each_row(products.threads, positions, vectors, RowTarget::loss_backward);
        record_all(positions, chunk.losses, &mut record);
        chunk.propagate(products, positions, vectors, gradients);
    });
}

fn record_all(positions: &[u32], losses: &[f32], record: &mut impl FnMut(usize, [f32; 2])) {
    for (&position, losses) in positions.iter().zip(losses.chunks(2)) {
        record(position as usize, [losses[0], losses[1]]);
    }
}

impl<'a> Chunk<'a> {
    /// Calls `row` with every target and its row of logits; it returns the two terms of the loss.
    fn each_row(
        &mut self,
        threads: &Threads,
        positions: &[u32],
        vectors: Vectors<'_>,
        row: impl Fn(RowTarget<'a>, &mut [f32]) -> [f32; 2] + Sync + Send,
    ) {
        let (batch, count) = (self.batch, vectors.count());
        threads.zip_chunks(
            [(self.logits, BLOCK * count), (self.losses, BLOCK * 2)],
            |index, [logits, losses]| {
                let rows = logits.chunks_mut(count).zip(losses.chunks_mut(2));
                for (place, (logits, losses)) in (index * BLOCK..).zip(rows) {
                    let target = batch.row_target(positions[place], vectors.first);
                    losses.copy_from_slice(&row(target, logits));
                }
            },
        );
    }

    /// Computes the gradients of hidden states and token vectors from those of the logits.
    fn propagate(
        &mut self,
        products: Products<'_>,
        positions: &[u32],
        vectors: Vectors<'_>,
        gradients: &mut Gradients<'_>,
    ) {
        let (rows, count, width) = (positions.len(), vectors.count(), vectors.width);
        let d_logits = Matrix::rows(self.logits, count);
        let matrix = Matrix::rows(vectors.rows, width);
        let dims = [rows, width, count];
        if self.contiguous {
            let d_hidden = &mut gradients.d_hidden[positions[0] as usize * width..];
            products.product(dims, d_logits, matrix, d_hidden, gradients.write);
        } else {
            let d_hidden = &mut *self.d_hidden;
            products.product(dims, d_logits, matrix, d_hidden, Write::Overwrite);
            scatter(
                products.threads,
                positions,
                width,
                d_hidden,
                gradients.write,
                gradients.d_hidden,
            );
        }
        let hidden = Matrix::rows(self.hidden, width);
        let dims = [count, width, rows];
        let d_vectors = &mut *gradients.d_vectors;
        let d_logits = d_logits.transposed();
        products.product(dims, d_logits, hidden, d_vectors, Write::Add);
    }
}

fn gather(positions: &[u32], width: usize, from: &[f32], to: &mut [f32]) {
    for (&position, to) in positions.iter().zip(to.chunks_mut(width)) {
        to.copy_from_slice(&from[position as usize * width..][..width]);
    }
}

/// Scatters rows to their positions, overwriting or adding.
fn scatter(
    threads: &Threads,
    positions: &[u32],
    width: usize,
    from: &[f32],
    write: Write<'_>,
    to: &mut [f32],
) {
    let to = Shared::new(to);
    let rows = 64;
    threads.each(positions.len().div_ceil(rows), |block| {
        for (row, &position) in positions.iter().enumerate().skip(block * rows).take(rows) {
            // SAFETY: every position occurs once.
            let to = unsafe { to.piece(position as usize * width, width) };
            let from = &from[row * width..][..width];
            match write {
                Write::Overwrite => to.copy_from_slice(from),
                Write::Add | Write::Bias(_) => add(from, to),
            }
        }
    });
}
