//! Products of a few rows with a matrix whose columns are contiguous: generation, where every
//! weight is read for a handful of tokens.
//!
//! Copying the matrix into panels would cost more than the product. So the roles are exchanged:
//! its columns become the rows that are read in place, and the few rows are the panel.

use super::kernel::{self, Block, Left};
use super::{DEPTH, Matrix, Packed, Write, part_len};
use crate::cpu::scratch::with_packing;
use crate::cpu::shared::Shared;

/// Above this many rows, copying the matrix pays.
const MOST_ROWS: usize = 32;
/// Columns of the output one block computes.
const BLOCK: usize = 96;

/// Whether this is the way for such operands.
pub(super) fn suits(rows: usize, lhs: Matrix<'_>, rhs: Matrix<'_>) -> bool {
    rows <= MOST_ROWS && lhs.column_stride == 1 && rhs.row_stride == 1
}

/// Columns of `out = lhs · rhs`, or what `write` says, from `offset` on. Sums are taken in the
/// order of the other way, so that a row's result does not depend on how many come with it.
///
/// # Safety
/// No other thread may touch these elements meanwhile.
pub(super) unsafe fn product(
    out: &Shared<'_>,
    offset: usize,
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    stride: usize,
    write: Write<'_>,
) {
    let width = m.next_multiple_of(kernel::COLUMNS);
    let depth = part_len(k, DEPTH);
    let parts = k.div_ceil(depth);
    let panels = Packed::len(depth, m);
    with_packing([parts * panels, BLOCK * width], |[packed, turned]| {
        for (step, packed) in (0..k).step_by(depth).zip(packed.chunks_mut(panels)) {
            let depth = depth.min(k - step);
            Packed::new(lhs.from(0, step).transposed(), depth, m, packed);
        }
        for column in (0..n).step_by(BLOCK) {
            let columns = BLOCK.min(n - column);
            // SAFETY: rows of the columns the caller vouches for.
            let row = |row: usize| unsafe { out.piece(offset + row * stride + column, columns) };
            for i in 0..m {
                let first = row(i);
                for (j, first) in first.iter().enumerate() {
                    turned[j * width + i] = match write {
                        Write::Overwrite => 0.0,
                        Write::Add => *first,
                        Write::Bias(bias) => bias[column + j],
                    };
                }
            }
            for (step, packed) in (0..k).step_by(depth).zip(packed.chunks(panels)) {
                let depth = depth.min(k - step);
                let rhs = rhs.from(step, column);
                // SAFETY: the scratch is exclusive and holds the block; the operands fit.
                unsafe {
                    kernel::multiply(Block {
                        dims: [columns, m, depth],
                        lhs: Left::Rows(rhs.elements, rhs.column_stride),
                        rhs: packed,
                        panel: kernel::COLUMNS * depth,
                        out: turned.as_mut_ptr(),
                        stride: width,
                        write: Write::Add,
                    });
                }
            }
            for i in 0..m {
                for (j, out) in row(i).iter_mut().enumerate() {
                    *out = turned[j * width + i];
                }
            }
        }
    });
}
