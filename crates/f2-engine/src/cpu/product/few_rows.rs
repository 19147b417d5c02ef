//! Products of a few rows with a matrix whose columns are contiguous: generation, where every
//! weight is read for a handful of tokens.
//!
//! Copying the matrix into panels would cost more than the product. So the roles are exchanged:
//! its columns become the rows that are read in place, and the few rows are the panel. The
//! bound is memory bandwidth: the weights are read once, in the order they are stored.

use super::kernel::{self, Block, Left};
use super::{DEPTH, Matrix, Operands, Write, pack, part_len};
use crate::cpu::threads::{Shared, Threads, with_packing, with_shared};

/// Above this many rows, copying the matrix pays.
pub(in crate::cpu) const FEW_ROWS: usize = 32;
/// Columns of the output that are turned at once: whole tiles of any size, and of eight.
const BLOCK: usize = 24;
/// Columns of the output a thread takes at once, at most.
const TASK: usize = 20 * BLOCK;

/// Whether these operands are multiplied here.
pub(super) fn suits(operands: Operands<'_>) -> bool {
    let Operands { dims: [rows, _, _], lhs, rhs, .. } = operands;
    rows <= FEW_ROWS && lhs.column_stride == 1 && rhs.row_stride == 1
}

/// `out = lhs · rhs`, or what `write` says, the rows of `out` contiguous. Sums are taken in the
/// order of the other two methods, so that a row's result does not depend on the other rows.
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
            with_packing([BLOCK * m.next_multiple_of(kernel::COLUMNS)], |[turned]| {
                for column in range.clone().step_by(BLOCK) {
                    let columns = BLOCK.min(range.end - column);
                    // SAFETY: columns of this task, which no other touches.
                    unsafe { few.block(column, columns, turned, &out) };
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
    /// The few rows: for every `depth` of them, panels of 16.
    packed: &'a [f32],
    rhs: Matrix<'a>,
    write: Write<'a>,
}

impl FewRows<'_> {
    /// Some columns of the output, by way of `turned: [columns, rows]`.
    ///
    /// # Safety
    /// No other thread may touch these columns meanwhile.
    unsafe fn block(self, column: usize, columns: usize, turned: &mut [f32], out: &Shared<'_>) {
        let Self { dims: [m, n, k], depth, packed, rhs, write } = self;
        assert!(column + columns <= n && m * n <= out.len());
        let width = m.next_multiple_of(kernel::COLUMNS);
        for (j, turned) in turned.chunks_mut(width).take(columns).enumerate() {
            match write {
                Write::Overwrite => turned.fill(0.0),
                Write::Bias(bias) => turned.fill(bias[column + j]),
                Write::Add => {
                    for (i, turned) in turned.iter_mut().enumerate().take(m) {
                        // SAFETY: an element of these columns.
                        *turned = unsafe { out.piece(i * n + column + j, 1) }[0];
                    }
                }
            }
        }
        // A tile's columns are read to their ends before the next tile's.
        let tile = kernel::tile_rows();
        for (first, turned) in (0..columns).step_by(tile).zip(turned.chunks_mut(tile * width)) {
            for step in (0..k).step_by(depth) {
                let packed = &packed[width * step..];
                let depth = depth.min(k - step);
                let rhs = rhs.from(step, column + first);
                // SAFETY: the scratch is exclusive and holds the block; the operands fit.
                unsafe {
                    kernel::multiply(Block {
                        dims: [tile.min(columns - first), m, depth],
                        lhs: Left::Streamed(rhs.elements, rhs.column_stride, step),
                        rhs: packed,
                        panel: kernel::COLUMNS * depth,
                        out: turned.as_mut_ptr(),
                        stride: width,
                        write: Write::Add,
                    });
                }
            }
        }
        // SAFETY: these columns of the output, as the caller guarantees.
        unsafe { pack::turn([m, columns], turned.as_ptr(), width, out.start().add(column), n) };
    }
}
