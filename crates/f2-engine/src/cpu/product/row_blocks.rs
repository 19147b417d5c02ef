//! Products cut by rows: the right operand is copied once, for all threads, and each takes the next
//! rows when it is done with its last ones.
//!
//! On a shared machine threads are not equally fast. The rows are therefore handed out in
//! pieces that get smaller towards the end, so that no thread waits long for the last one.

use std::ops::Range;

use super::kernel::{self, Block, tile_rows};
use super::{DEPTH, Matrix, Operands, ROWS, Write, pack, part_len};
use crate::cpu::threads::{Shared, Threads, with_packing, with_shared};

/// Floats of the right operand copied at once: 8 MiB, which a last-level cache holds.
const COPIED: usize = 1 << 21;
/// Columns one task copies.
const COPY: usize = 8 * kernel::COLUMNS;
/// Rows worth a task of their own.
const FEWEST_ROWS: usize = 24;

/// Whether these operands are multiplied here.
pub(super) fn suits(operands: Operands<'_>) -> bool {
    let Operands { dims: [m, n, k], lhs, .. } = operands;
    let slice = n * part_len(k, DEPTH);
    // A left operand that must be packed too is packed only once by this method.
    let enough = if lhs.column_stride == 1 { 2 * m >= n } else { m >= 4 * FEWEST_ROWS || m >= n };
    slice <= COPIED && enough
}

/// An operation on a piece of the output as soon as it is ready: rows side by side, or a part of
/// one row. The number is that of its first element.
pub(in crate::cpu) type Then<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// `out = lhs · rhs`, or what `write` says, the rows of `out` contiguous.
pub(super) fn product(
    threads: &Threads,
    operands: Operands<'_>,
    out: &mut [f32],
    then: Option<Then<'_>>,
) {
    let Operands { dims: [m, n, k], lhs, rhs, write } = operands;
    let depth = part_len(k, DEPTH);
    let width = n.next_multiple_of(kernel::COLUMNS);
    let slice = (COPIED / (width * depth)).max(1) * depth;
    let blocks = threads.dwindling(m, FEWEST_ROWS, ROWS);
    let out = Shared::new(out);
    with_shared(width * slice.min(k), |panels| {
        for start in (0..k).step_by(slice) {
            let steps = start..k.min(start + slice);
            copy(threads, [n, depth], rhs, steps.clone(), panels);
            let slice = Slice { n, width, depth, steps: steps.clone(), panels, write };
            threads.each(blocks.len(), |block| {
                let rows = blocks[block].clone();
                // SAFETY: no other task has these rows.
                let out = unsafe { out.piece(rows.start * n, rows.len() * n) };
                slice.multiply(lhs.from(rows.start, 0), rows.len(), out);
                if let (Some(then), true) = (then, steps.end == k) {
                    then(rows.start * n, out);
                }
            });
        }
    });
}

/// Copies rows `steps` of the right operand: for every `depth` of them all panels of 16 columns.
fn copy(
    threads: &Threads,
    [n, depth]: [usize; 2],
    rhs: Matrix<'_>,
    steps: Range<usize>,
    panels: &mut [f32],
) {
    let width = n.next_multiple_of(kernel::COLUMNS);
    let groups = n.div_ceil(COPY);
    let panels = Shared::new(panels);
    threads.each(steps.len().div_ceil(depth) * groups, |task| {
        let (step, column) = (task / groups * depth, task % groups * COPY);
        let depth = depth.min(steps.len() - step);
        let columns = COPY.min(n - column);
        let len = columns.next_multiple_of(kernel::COLUMNS) * depth;
        // SAFETY: no other task has these panels.
        let panels = unsafe { panels.piece(width * step + column * depth, len) };
        pack::right(rhs.from(steps.start + step, column), depth, columns, panels);
    });
}

/// A copied part of the right operand.
struct Slice<'a> {
    /// Columns, and the same with those that fill the last panel.
    n: usize,
    width: usize,
    /// The length of sums that are added to the output at once.
    depth: usize,
    /// The rows of the right operand that were copied.
    steps: Range<usize>,
    panels: &'a [f32],
    write: Write<'a>,
}

impl Slice<'_> {
    /// This slice's part of some rows, `out: [rows, n]`.
    fn multiply(&self, lhs: Matrix<'_>, rows: usize, out: &mut [f32]) {
        assert!(out.len() >= rows * self.n && lhs.fits(rows, self.steps.end));
        let tile = tile_rows();
        let left_len =
            if lhs.column_stride == 1 { 0 } else { rows.next_multiple_of(tile) * self.depth };
        with_packing([left_len], |[left]| {
            for step in self.steps.clone().step_by(self.depth) {
                let depth = self.depth.min(self.steps.end - step);
                let lhs = super::left(lhs.from(0, step), rows, depth, tile, left);
                let write = if step > 0 { Write::Add } else { self.write };
                let (out, stride) = (out.as_mut_ptr(), self.n);
                let rhs = &self.panels[self.width * (step - self.steps.start)..];
                let (dims, panel) = ([rows, self.n, depth], kernel::COLUMNS * depth);
                // SAFETY: the operands hold the block, the output is exclusive, as asserted.
                unsafe {
                    kernel::multiply(Block { dims, lhs, rhs, panel, out, stride, write });
                }
            }
        });
    }
}
