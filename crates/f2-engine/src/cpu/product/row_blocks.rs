//! Products split by rows: the right operand is packed once for all threads, which then take blocks
//! of rows until none is left.
//!
//! On a shared machine threads are not equally fast. The blocks therefore get smaller towards the
//! end, so that no thread waits long for the last one.

use std::ops::Range;

use super::kernel::{self, Block, tile_rows};
use super::{DEPTH, Matrix, Operands, ROWS, Write, pack, part_len};
use crate::cpu::threads::{Shared, Threads, with_packing, with_shared};

/// The size of the packed part of the right operand in floats: 8 MiB, which fits a last-level
/// cache.
const COPIED: usize = 1 << 21;
/// Columns packed by one task.
const COPY: usize = 8 * kernel::COLUMNS;
/// The minimum number of rows in a task.
const FEWEST_ROWS: usize = 24;

/// Whether this method suits these operands.
pub(super) fn suits(operands: Operands<'_>) -> bool {
    let Operands { dims: [m, n, k], lhs, .. } = operands;
    let slice = n * part_len(k, DEPTH);
    // This method packs a left operand without contiguous rows only once.
    let enough = if lhs.column_stride == 1 { 2 * m >= n } else { m >= 4 * FEWEST_ROWS || m >= n };
    slice <= COPIED && enough
}

/// The epilogue of a product: called with every finished part of the output, whole rows or a part
/// of one row, and the index of its first element.
pub(in crate::cpu) type Then<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// Computes a product, with contiguous rows of `out`.
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

/// Packs rows `steps` of the right operand: for each `depth` of them, all panels of 16 columns.
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

/// A packed slice of the right operand, and the dimensions of the product.
struct Slice<'a> {
    /// The number of columns, without and with the padding of the last panel.
    n: usize,
    width: usize,
    /// The length of the sums that are added to the output at a time.
    depth: usize,
    /// The packed rows of the right operand.
    steps: Range<usize>,
    panels: &'a [f32],
    write: Write<'a>,
}

impl Slice<'_> {
    /// Adds this slice's contribution to some rows, `out: [rows, n]`.
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
