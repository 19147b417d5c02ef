//! Products of a few rows with a matrix whose columns are contiguous: generation, where every
//! weight is read for a handful of tokens.
//!
//! Copying the matrix into panels would cost more than the product. So the roles are exchanged:
//! its columns become the rows that are read in place, and the few rows are the panel. What
//! bounds it is how fast the weights come from memory: they are read once, in the order they lie,
//! or in that of a [`Stream`] where one was made.

use std::ops::Range;

use super::kernel::{self, Block, Left};
use super::{DEPTH, Matrix, Packed, Stream, Write, pack, part_len};
use crate::cpu::scratch::{with_packing, with_shared};
use crate::cpu::shared::Shared;
use crate::cpu::threads::Threads;

/// Above this many rows, copying the matrix pays.
pub(in crate::cpu) const FEW_ROWS: usize = 32;
/// Columns of the output that are turned at once: whole groups.
const BLOCK: usize = 24;
/// Columns of the output a thread takes at once, at most.
const TASK: usize = 20 * BLOCK;

/// Whether this is the way for such operands.
pub(super) fn suits(rows: usize, lhs: Matrix<'_>, rhs: Matrix<'_>) -> bool {
    rows <= FEW_ROWS && lhs.column_stride == 1 && rhs.row_stride == 1
}

/// `out = lhs · rhs`, or what `write` says, the rows of `out` side by side. Sums are taken in the
/// order of the other ways, so that a row's result does not depend on how many come with it.
pub(super) fn product(
    threads: &Threads,
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Columns<'_>,
    out: &mut [f32],
    write: Write<'_>,
) {
    let depth = part_len(k, DEPTH);
    let panels = Packed::len(depth, m);
    let skipped = rhs.skipped();
    let tasks = threads.dwindling(skipped + n, 2 * BLOCK, TASK);
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
                for start in range.clone().step_by(BLOCK) {
                    let end = range.end.min(start + BLOCK);
                    // SAFETY: columns of this task, which no other touches.
                    unsafe { few.block(start..end, turned, &out) };
                }
            });
        });
    });
}

/// The right operand's columns.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    /// Where they lie.
    InPlace(Matrix<'a>),
    /// Copied for this.
    Stream(Stream<'a>),
}

impl<'a> Columns<'a> {
    /// How many come before the first of the product.
    fn skipped(self) -> usize {
        match self {
            Self::InPlace(_) => 0,
            Self::Stream(stream) => stream.skipped,
        }
    }

    /// How many are multiplied by `rows` rows before the next begin: what is read in between lies
    /// together. A stream's tiles come one by one, or two side by side where rows are few.
    fn group(self, rows: usize) -> usize {
        match self {
            Self::InPlace(_) => BLOCK / 2,
            Self::Stream(_) if rows <= kernel::NARROW => 2 * kernel::tile_rows(),
            Self::Stream(_) => kernel::tile_rows(),
        }
    }

    /// From this column, counted with those before the first, and element of it on.
    fn from(self, column: usize, step: usize) -> Left<'a> {
        match self {
            Self::InPlace(matrix) => {
                let matrix = matrix.from(step, column);
                Left::Streamed(matrix.elements, matrix.column_stride)
            }
            Self::Stream(Stream { elements, depth, .. }) => {
                let tile = kernel::tile_rows();
                Left::Stream(&elements[column * depth + step * tile..], tile * depth)
            }
        }
    }
}

/// What all tasks read.
#[derive(Clone, Copy)]
struct FewRows<'a> {
    dims: [usize; 3],
    depth: usize,
    /// The few rows: for every `depth` of them, panels of 16.
    packed: &'a [f32],
    rhs: Columns<'a>,
    write: Write<'a>,
}

impl FewRows<'_> {
    /// Some columns of the output, by way of `turned: [columns, rows]`; `range` counts from the
    /// right operand's tile on in which the first column lies.
    ///
    /// # Safety
    /// No other thread may touch these columns meanwhile.
    unsafe fn block(self, range: Range<usize>, turned: &mut [f32], out: &Shared<'_>) {
        let Self { dims: [m, n, k], depth, packed, rhs, write } = self;
        let skipped = rhs.skipped();
        let width = m.next_multiple_of(kernel::COLUMNS);
        // Fewer than a block's, so only the first block has any.
        let unused = skipped.saturating_sub(range.start);
        let (column, columns) = (range.start + unused - skipped, range.len() - unused);
        assert!(column + columns <= n && m * n <= out.len());
        let used = turned.chunks_mut(width).skip(unused).take(columns);
        for (j, turned) in used.enumerate() {
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
        let group = rhs.group(m);
        for (start, turned) in range.clone().step_by(group).zip(turned.chunks_mut(group * width)) {
            for step in (0..k).step_by(depth) {
                let packed = &packed[width * step..];
                let depth = depth.min(k - step);
                // SAFETY: the scratch is exclusive and holds the block; the operands fit.
                unsafe {
                    kernel::multiply(Block {
                        dims: [group.min(range.end - start), m, depth],
                        lhs: rhs.from(start, step),
                        rhs: packed,
                        panel: kernel::COLUMNS * depth,
                        out: turned.as_mut_ptr(),
                        stride: width,
                        write: Write::Add,
                    });
                }
            }
        }
        // SAFETY: these columns of the output, as the caller vouches.
        unsafe {
            let turned = turned.as_ptr().add(unused * width);
            pack::turn([m, columns], turned, width, out.start().add(column), n);
        }
    }
}
