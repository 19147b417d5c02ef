//! Sums of columns, for bias gradients. An operation that writes a gradient can sum its columns in
//! the same pass; the backward pass of the linear layer that follows then need not.

use std::sync::{Mutex, PoisonError};

use super::{ADD_PARTIAL, COLUMN_SUMS};
use crate::cuda::runtime::Grid;
use crate::cuda::{Cuda, Precision};

/// Rows that one block sums.
pub(super) const SUMMED_ROWS: usize = 128;

/// Sums of the columns of the matrix at `of`, in `partial: [blocks, columns]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cuda) struct ColumnSums {
    pub(in crate::cuda) of: u64,
    pub(in crate::cuda) rows: usize,
    pub(in crate::cuda) columns: usize,
    pub(in crate::cuda) blocks: usize,
    pub(in crate::cuda) partial: u64,
}

/// The sums the last operation left in scratch, and the number of operations enqueued by then: any
/// later operation may have overwritten the sums or the matrix.
#[derive(Default)]
pub(in crate::cuda) struct LastSums(Mutex<Option<(ColumnSums, u64)>>);

impl<P: Precision> Cuda<P> {
    /// Leaves sums for the next operation.
    pub(in crate::cuda) fn leave_sums(&self, sums: ColumnSums) {
        let mut last = self.last_sums.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((sums, self.stream.enqueued()));
    }

    /// `to += Σ rows of x`, `x: [rows, columns]`.
    pub(super) fn add_column_sums(&self, rows: usize, columns: usize, x: u64, to: u64) {
        let last = self.last_sums.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let known = last.filter(|(sums, enqueued)| {
            (sums.of, sums.rows, sums.columns, *enqueued)
                == (x, rows, columns, self.stream.enqueued())
        });
        if let Some((sums, _)) = known {
            return self.add_partial(sums.blocks, [columns, 0], sums.partial, [to, 0]);
        }
        let blocks = rows.div_ceil(SUMMED_ROWS);
        let Some(partial) = self.scratch(blocks * columns * size_of::<f32>()) else { return };
        let arguments = (rows, columns, SUMMED_ROWS, x, partial);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(COLUMN_SUMS, by_columns(columns, blocks), arguments) };
        self.add_partial(blocks, [columns, 0], partial, [to, 0]);
    }

    /// Adds `partial: [blocks, columns]` to one or two ranges of the gradients.
    pub(in crate::cuda) fn add_partial(
        &self,
        blocks: usize,
        [first, second]: [usize; 2],
        partial: u64,
        [to_first, to_second]: [u64; 2],
    ) {
        let grid = Grid::blocks((first + second).div_ceil(32), 1024);
        let arguments = (blocks, first, second, partial, to_first, to_second);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(ADD_PARTIAL, grid, arguments) };
    }
}

/// A grid of blocks of 256 columns, with `blocks` of them along the rows.
pub(super) fn by_columns(columns: usize, blocks: usize) -> Grid {
    Grid::blocks(columns.div_ceil(256), 256).by(blocks)
}
