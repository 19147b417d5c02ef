//! The loss: a softmax over some rows of the output matrix for some entries of the targets, a chunk
//! at a time. The plain softmax is one such pass over all tokens; F² has one for every group of
//! classes, and a softmax over classes for every position.

use std::ops::Range;

use super::targets::{Targets, stride};
use super::{SOFTMAX_LONG_ROWS, SOFTMAX_SHORT_ROWS};
use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::product::{Matrix, Target};
use crate::cuda::runtime::Grid;
use crate::cuda::{Cuda, Precision};
use crate::{Classes, Head, Parameter};

/// Rows of at most this many columns get a warp each, longer ones a block.
const SHORT: usize = 1024;
/// The most candidates whose gradients fit a block's shared memory.
const MOST_CANDIDATES: usize = 11 << 10;

/// A softmax over the token vectors `vectors`, for some entries of the targets.
struct Softmax {
    vectors: Parameter,
    entries: Range<usize>,
    /// The hidden states of all entries, `[entries, width]`.
    hidden: u64,
    /// The address of their gradients; `None` for the loss alone.
    d_hidden: Option<u64>,
    /// The addresses of likelihoods and penalties, by position.
    losses: [u64; 2],
}

/// Rows of logits and their targets.
struct Rows {
    logits: u64,
    count: usize,
    columns: usize,
    /// The entry of the first row.
    first: usize,
    /// See [`Targets::lists`].
    lists: [u64; 5],
    losses: u64,
    backward: bool,
}

/// Rows of the gradient that a product adds to: a multiple of eight, which is faster (the extra
/// rows get zeros), unless the buffer is too short.
fn outputs_to_add(vectors: Parameter, buffer: usize) -> usize {
    let whole = stride(vectors.rows);
    if vectors.offset + whole * vectors.columns <= buffer { whole } else { vectors.rows }
}

/// Destination of the gradients.
pub(super) struct Gradients<'a, E> {
    pub(super) d_hidden: &'a Buffer<E>,
    pub(super) parameters: &'a Buffer<f32>,
}

impl<P: Precision> Cuda<P> {
    /// The two parts of every position's loss, and gradients if requested.
    pub(super) fn loss_and_gradients(
        &self,
        head: &Head,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &Buffer<f32>,
        gradients: Option<&Gradients<'_, P::Element>>,
    ) {
        let (positions, width) = (targets.positions, head.tokens.columns);
        let (entries, order) = (targets.entries(), targets.order());
        losses.zero(0..2 * positions);
        let mut parts = [losses.at(0), losses.at(positions)];
        if let Some(classes) = &head.classes {
            self.class_loss(classes, weights, targets, hidden, losses, gradients);
            parts = [losses.at(positions), 0];
        }
        // If every position counts and there are no classes, entries are positions: no gather is
        // needed.
        let moves = head.classes.is_some() || entries != positions;
        let from = if moves { &targets.hidden } else { hidden };
        if moves {
            self.gather_rows(entries, width, order, hidden.at(0), from.at(0));
        }
        let to = gradients
            .map(|gradients| if moves { &targets.d_hidden } else { gradients.d_hidden })
            .map(|to| to.at(0));
        for group in targets.groups() {
            let softmax = Softmax {
                vectors: head.tokens.slice(group.members.clone()),
                entries: group.entries.clone(),
                hidden: from.at(0),
                d_hidden: to,
                losses: parts,
            };
            let parameters = gradients.map(|gradients| gradients.parameters);
            self.softmax_head(&softmax, weights, targets, parameters);
        }
        if let (Some(Gradients { d_hidden, .. }), true) = (gradients, moves) {
            // The softmax over classes has written the gradient of every position.
            let adds = head.classes.is_some();
            if !adds {
                d_hidden.zero(0..positions * width);
            }
            let places = [order, targets.d_hidden.at(0), d_hidden.at(0)];
            self.scatter_rows(entries, width, adds, places);
        }
    }

    /// The softmax over classes; overwrites the gradient of the hidden states.
    fn class_loss(
        &self,
        classes: &Classes,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &Buffer<f32>,
        gradients: Option<&Gradients<'_, P::Element>>,
    ) {
        let (count, width) = (classes.vectors.rows, classes.vectors.columns);
        let positions = targets.positions;
        let matrix = Matrix::new(weights.real(classes.vectors), width);
        let hidden = Matrix::new(hidden.at(0), width);
        let logits = targets.class_logits.at(0);
        let to = Target::real(logits, stride(count));
        self.product([positions, count, width], hidden, matrix.transposed(), to);
        self.softmax_short_rows(&Rows {
            logits,
            count: positions,
            columns: count,
            first: 0,
            lists: targets.class_lists(),
            losses: losses.at(0),
            backward: gradients.is_some(),
        });
        if let Some(Gradients { d_hidden, parameters }) = gradients {
            let d_logits = Matrix::new(logits, stride(count));
            let to = Target::real(d_hidden.at(0), width);
            self.product([positions, width, count], d_logits, matrix, to);
            let to = Target::sum(parameters.at(classes.vectors.offset), width);
            self.product([count, width, positions], d_logits.transposed(), hidden, to);
        }
    }

    fn softmax_head(
        &self,
        softmax: &Softmax,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        gradients: Option<&Buffer<f32>>,
    ) {
        let Softmax { vectors, .. } = *softmax;
        let (columns, width) = (vectors.rows, vectors.columns);
        let matrix = Matrix::new(weights.real(vectors), width);
        let logits = Matrix::new(targets.logits.at(0), stride(columns));
        let bytes = size_of::<P::Element>();
        for chunk in targets.chunks(softmax.entries.clone(), columns, bytes) {
            let (rows, offset) = (chunk.len(), (chunk.start * width * bytes) as u64);
            let hidden = Matrix::new(softmax.hidden + offset, width);
            // Products include the padding of rows, since they are faster with multiples of eight;
            // the loss ignores these columns, and their gradients are zero.
            let to = Target::real(targets.logits.at(0), stride(columns));
            self.product([rows, stride(columns), width], hidden, matrix.transposed(), to);
            let rows_of_logits = Rows {
                logits: targets.logits.at(0),
                count: rows,
                columns,
                first: chunk.start,
                lists: targets.lists(),
                losses: softmax.losses[0],
                backward: softmax.d_hidden.is_some(),
            };
            self.softmax_rows(&rows_of_logits, targets, softmax.losses[1]);
            if let (Some(d_hidden), Some(gradients)) = (softmax.d_hidden, gradients) {
                let to = Target::real(d_hidden + offset, width);
                self.product([rows, width, stride(columns)], logits, matrix, to);
                let to = Target::sum(gradients.at(vectors.offset), width);
                let outputs = outputs_to_add(vectors, gradients.len());
                self.product([outputs, width, rows], logits.transposed(), hidden, to);
            }
        }
    }

    fn softmax_rows(&self, rows: &Rows, targets: &Targets<P::Element>, penalties: u64) {
        if rows.columns <= SHORT && targets.penalties.is_none() {
            return self.softmax_short_rows(rows);
        }
        // A longer row is a single class or the plain softmax, so its softmax is over all columns.
        let (mut candidates, mut settings, mut longest) = ([0; 3], (0.0, 0.0), 0);
        if let Some(penalty) = targets.penalties {
            candidates = targets.candidates();
            settings = (penalty.weight, penalty.floor);
            longest = penalty.longest;
        }
        if longest > MOST_CANDIDATES {
            let reason = format!("{longest} candidates of one position are too many");
            return self.stream.note("unlikelihood", Err(reason));
        }
        let threads = if rows.columns > 4 * SHORT { 1024 } else { 256 };
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                SOFTMAX_LONG_ROWS,
                Grid::blocks(rows.count, threads).sharing(longest * size_of::<f32>()),
                (
                    rows.columns,
                    stride(rows.columns),
                    rows.first,
                    rows.lists[0],
                    rows.lists[1],
                    rows.lists[2],
                    rows.backward,
                    rows.logits,
                    rows.losses,
                    penalties,
                    candidates[0],
                    candidates[1],
                    candidates[2],
                    settings.0,
                    settings.1,
                ),
            );
        }
    }

    fn softmax_short_rows(&self, rows: &Rows) {
        let [order, columns, weights, class_starts, class_ends] = rows.lists;
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                SOFTMAX_SHORT_ROWS,
                Grid::rows(rows.count),
                (
                    rows.count,
                    rows.columns,
                    stride(rows.columns),
                    rows.first,
                    order,
                    columns,
                    weights,
                    class_starts,
                    class_ends,
                    rows.backward,
                    rows.logits,
                    rows.losses,
                ),
            );
        }
    }
}
