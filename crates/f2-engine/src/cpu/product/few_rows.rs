//! Products of a few rows with a matrix whose columns are contiguous: generation, where every
//! weight is read for a handful of tokens.
//!
//! Packing the matrix would cost more than the product. So the operands are exchanged: the columns
//! of the matrix become the rows that are read in place, and the few rows are packed into panels.
//! The weights are read once, in the order they are stored; the limit is memory bandwidth.

use super::kernel::{self, Block, Left};
use super::{DEPTH, Matrix, Operands, Write, pack, part_len};
use crate::cpu::threads::{Shared, Threads, with_packing, with_shared};

/// The largest number of rows for which packing the matrix does not pay.
pub(in crate::cpu) const FEW_ROWS: usize = 32;
/// Columns of the output transposed together: a multiple of all tile sizes and of eight.
const BLOCK: usize = 24;
/// The maximum number of output columns in a task.
const TASK: usize = 20 * BLOCK;

/// Whether this method suits these operands.
pub(super) fn suits(operands: Operands<'_>) -> bool {
    let Operands { dims: [rows, _, _], lhs, rhs, .. } = operands;
    rows <= FEW_ROWS && lhs.column_stride == 1 && rhs.row_stride == 1
}

/// Computes a product, with contiguous rows of `out`. Sums have the same order as in the other two
/// methods, so that the result for a row does not depend on the number of rows.
pub(super) fn product(threads: &Threads, operands: Operands<'_>, out: &mut [f32]) {
    let Operands { dims: [m, n, k], lhs, rhs, write } = operands;
    let depth = part_len(k, DEPTH);
    let panels = m.next_multiple_of(kernel::COLUMNS) * depth;
    let tasks = threads.dwindling(n, 2 * BLOCK, TASK);
    let out = Shared::new(out);
    with_shared(k.div_ceil(depth) * panels, |packed| {
        for (step, packed) in (0..k).step_by(depth).zip(packed.chunks_mut(panels)) {
            let depth = depth.min(k - step);
            pack::right(lhs.from(0, step).transposed(), depth, m, packed);
        }
        let few = FewRows { dims: [m, n, k], depth, packed, rhs, write };
        threads.each(tasks.len(), |task| {
            let range = tasks[task].clone();
            with_packing([BLOCK * m.next_multiple_of(kernel::COLUMNS)], |[transposed]| {
                for column in range.clone().step_by(BLOCK) {
                    let columns = BLOCK.min(range.end - column);
                    // SAFETY: only this task touches these columns.
                    unsafe { few.block(column, columns, transposed, &out) };
                }
            });
        });
    });
}

/// The inputs of all tasks.
#[derive(Clone, Copy)]
struct FewRows<'a> {
    dims: [usize; 3],
    depth: usize,
    /// The packed left operand: for every `depth` steps, panels of 16 rows.
    packed: &'a [f32],
    rhs: Matrix<'a>,
    write: Write<'a>,
}

impl FewRows<'_> {
    /// Computes some columns of the output, in `transposed: [columns, rows]` first.
    ///
    /// # Safety
    /// No other thread may touch these columns meanwhile.
    unsafe fn block(self, column: usize, columns: usize, transposed: &mut [f32], out: &Shared<'_>) {
        let Self { dims: [m, n, k], depth, packed, rhs, write } = self;
        assert!(column + columns <= n && m * n <= out.len());
        let width = m.next_multiple_of(kernel::COLUMNS);
        for (j, transposed) in transposed.chunks_mut(width).take(columns).enumerate() {
            match write {
                Write::Overwrite => transposed.fill(0.0),
                Write::Bias(bias) => transposed.fill(bias[column + j]),
                Write::Add => {
                    for (i, transposed) in transposed.iter_mut().enumerate().take(m) {
                        // SAFETY: an element of these columns.
                        *transposed = unsafe { out.piece(i * n + column + j, 1) }[0];
                    }
                }
            }
        }
        // The columns of a tile are read to their ends before those of the next tile.
        let tile = kernel::tile_rows();
        for (first, transposed) in
            (0..columns).step_by(tile).zip(transposed.chunks_mut(tile * width))
        {
            for step in (0..k).step_by(depth) {
                let packed = &packed[width * step..];
                let depth = depth.min(k - step);
                let rhs = rhs.from(step, column + first);
                // SAFETY: the scratch is exclusive and has room for the block; the operands fit.
                unsafe {
                    kernel::multiply(Block {
                        dims: [tile.min(columns - first), m, depth],
                        lhs: Left::Streamed(rhs.elements, rhs.column_stride, step),
                        rhs: packed,
                        panel: kernel::COLUMNS * depth,
                        out: transposed.as_mut_ptr(),
                        stride: width,
                        write: Write::Add,
                    });
                }
            }
        }
        // SAFETY: these columns of the output, as the caller guarantees.
        unsafe {
            pack::transpose([m, columns], transposed.as_ptr(), width, out.start().add(column), n);
        }
    }
}
