//! The heads' common part: a softmax over some rows of the output matrix for some entries of the
//! targets, a chunk at a time. The plain softmax is one such pass over everything, F² one for
//! every class.

use std::ops::Range;

use super::targets::{Targets, stride};
use crate::Parameter;
use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::product::{Matrix, Target};
use crate::cuda::runtime::{Grid, arguments};
use crate::cuda::{Cuda, Precision};

/// Rows of at most this many columns get a warp each, longer ones a block.
const SHORT: usize = 1024;
/// Candidates a block has room for.
const MOST_CANDIDATES: usize = 11 << 10;

/// A softmax over the token vectors `vectors`, for some entries of the targets.
pub(super) struct Softmax {
    pub(super) vectors: Parameter,
    pub(super) entries: Range<usize>,
    /// The hidden states of all entries, `[entries, width]`.
    pub(super) hidden: u64,
    /// Where their gradients go; none for the loss alone.
    pub(super) d_hidden: Option<u64>,
    /// Where likelihoods and penalties go, by position.
    pub(super) losses: [u64; 2],
}

/// Rows of logits and what they aim at.
pub(super) struct Rows {
    pub(super) logits: u64,
    pub(super) count: usize,
    pub(super) columns: usize,
    /// The first one's entry.
    pub(super) first: usize,
    /// Order, columns and weights of entries, and the columns of their classes.
    pub(super) aims: [u64; 5],
    pub(super) losses: u64,
    pub(super) backward: bool,
}

/// Rows of the gradient that a product adds to: whole eights, the last of which get zeros, unless the
/// buffer ends before them.
fn outputs_to_add(vectors: Parameter, buffer: usize) -> usize {
    let whole = stride(vectors.rows);
    if vectors.offset + whole * vectors.columns <= buffer { whole } else { vectors.rows }
}

impl<P: Precision> Cuda<P> {
    pub(super) fn softmax_head(
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
            // Products run over the columns between rows as well: they are faster at whole eights, the
            // loss leaves such columns out, and their gradients are zero.
            let to = Target::real(targets.logits.at(0), stride(columns));
            self.product([rows, stride(columns), width], hidden, matrix.transposed(), to);
            let rows_of_logits = Rows {
                logits: targets.logits.at(0),
                count: rows,
                columns,
                first: chunk.start,
                aims: targets.aims(),
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
        // A longer row is one class alone, or the plain softmax: it is over all columns.
        let (mut lists, mut settings, mut room) = ([0; 3], (0.0, 0.0), 0);
        if let Some(penalty) = targets.penalties {
            lists = targets.candidates();
            settings = (penalty.weight, penalty.floor);
            room = penalty.longest;
        }
        if room > MOST_CANDIDATES {
            let reason = format!("{room} candidates of one position are too many");
            return self.stream.note("unlikelihood", Err(reason));
        }
        let threads = if rows.columns > 4 * SHORT { 1024 } else { 256 };
        self.launch(
            "softmax_long_rows",
            Grid::blocks(rows.count, threads).sharing(room * size_of::<f32>()),
            arguments![
                rows.columns,
                stride(rows.columns),
                rows.first,
                rows.aims[0],
                rows.aims[1],
                rows.aims[2],
                rows.backward,
                rows.logits,
                rows.losses,
                penalties,
                lists[0],
                lists[1],
                lists[2],
                settings.0,
                settings.1,
            ],
        );
    }

    pub(super) fn softmax_short_rows(&self, rows: &Rows) {
        let [order, columns, weights, class_starts, class_ends] = rows.aims;
        self.launch(
            "softmax_short_rows",
            Grid::rows(rows.count),
            arguments![
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
            ],
        );
    }
}
