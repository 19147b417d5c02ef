//! Products whose operands are rounded to bf16 and whose sums are `f32`: by AMX where the processor
//! has it, else by AVX-512's dot products of pairs.
//!
//! Both operands are copied into tiles of 16 rows (or columns) by 32 steps of the sum, 1 KiB each.
//! An element's sum runs over whole tiles in order, wherever it lies and whatever is computed beside
//! it, so batch size and threads change no bit. The two instruction sets round differently inside a
//! tile: a run belongs to one of them.

mod kernel;
mod pack;

use kernel::{Output, multiply};
use pack::{Form, Operand};

use super::row_blocks::Then;
use super::{Matrix, Write};
use crate::cpu::scratch::{with_packing, with_shared};
use crate::cpu::shared::Shared;
use crate::cpu::threads::Threads;

/// Rows or columns of a tile.
const TILE: usize = 16;
/// Steps of the sum in a tile.
const STEP: usize = 32;
/// Floats that take the room of a tile.
const TILE_LEN: usize = TILE * STEP / 2;

/// Steps of the sum before it is added to the output.
const DEPTH: usize = 2048;
/// Floats' room of the right operand copied at once: 1 MiB, which a second-level cache holds.
const COPIED: usize = 1 << 18;
/// Rows of a task: at least, and at most. Whole pairs of tiles.
const FEWEST_ROWS: usize = 2 * TILE;
const MOST_ROWS: usize = 6 * TILE;
/// Columns one task copies.
const COPY: usize = 4 * TILE;

/// Floats' room that `len` rows or columns of a sum of `depth` steps take in tiles.
pub(super) fn packed_len(len: usize, depth: usize) -> usize {
    len.div_ceil(TILE) * depth.div_ceil(STEP) * TILE_LEN
}

/// `out = lhs · rhs`, or what `write` says, the rows of `out` side by side; `then` is called with
/// every finished piece of a row or of several rows, and where it begins.
pub(super) fn product(
    threads: &Threads,
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    out: &mut [f32],
    write: Write<'_>,
    then: Option<Then<'_>>,
) {
    let blocks = threads.dwindling(m, FEWEST_ROWS, MOST_ROWS);
    let out = Shared::new(out);
    for step in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - step);
        let width = (COPIED / packed_len(TILE, depth)).max(1) * TILE;
        let then = then.filter(|_| step + depth == k);
        for column in (0..n).step_by(width) {
            let columns = width.min(n - column);
            let write = match write {
                _ if step > 0 => Write::Add,
                Write::Bias(bias) => Write::Bias(&bias[column..]),
                other => other,
            };
            let right = Operand::right(rhs.from(step, column), columns, depth);
            with_shared(packed_len(columns, depth), |tiles| {
                copy(threads, right, tiles);
                let tiles = &*tiles;
                threads.each(blocks.len(), |block| {
                    let rows = blocks[block].clone();
                    let left = Operand::left(lhs.from(rows.start, step), rows.len(), depth);
                    let start = rows.start * n + column;
                    // SAFETY: no other task has these rows.
                    unsafe { multiply_rows(left, tiles, columns, &out, start, n, write) };
                    let Some(then) = then else { return };
                    // SAFETY: as above.
                    let piece = |start, len| unsafe { out.piece(start, len) };
                    if columns == n {
                        return then(start, piece(start, rows.len() * n));
                    }
                    for row in 0..rows.len() {
                        then(start + row * n, piece(start + row * n, columns));
                    }
                });
            });
        }
    }
}

/// Copies an operand into tiles, on all threads.
fn copy(threads: &Threads, operand: Operand<'_>, tiles: &mut [f32]) {
    let shared = Shared::new(tiles);
    threads.each(operand.len.div_ceil(COPY), |task| {
        let first = task * COPY;
        let part = operand.part(first, COPY.min(operand.len - first));
        let len = packed_len(part.len, part.depth);
        // SAFETY: no other task has these tiles.
        part.pack(unsafe { shared.piece(packed_len(first, part.depth), len) });
    });
}

/// The product of some rows, copied here, with columns that were copied before.
///
/// # Safety
/// No other thread may touch these rows of the output meanwhile.
unsafe fn multiply_rows(
    left: Operand<'_>,
    right: &[f32],
    columns: usize,
    out: &Shared<'_>,
    start: usize,
    stride: usize,
    write: Write<'_>,
) {
    assert!(stride >= columns && start + (left.len - 1) * stride + columns <= out.len());
    with_packing([packed_len(left.len, left.depth)], |[tiles]| {
        left.pack(tiles);
        let dims = [left.len, columns, left.depth];
        // SAFETY: within the output, as asserted, and not touched by another thread.
        unsafe {
            let out = Output { start: out.start().add(start), stride, write };
            multiply(dims, tiles, right, left.depth.div_ceil(STEP), out);
        }
    });
}

/// Copies `[depth, columns]` of a right operand into tiles, for several products.
pub(super) fn pack_right(matrix: Matrix<'_>, depth: usize, columns: usize, tiles: &mut [f32]) {
    Operand::right(matrix, columns, depth).pack(tiles);
}

/// The product with a right operand that was copied before, of which the first `k` steps and `n`
/// columns count; on the calling thread.
///
/// # Safety
/// `out` must be valid for `m` rows of `n` floats that lie `stride` apart, not touched by anything
/// else; the operands must hold their matrices, the right one `depth` steps.
pub(super) unsafe fn packed_product(
    dims @ [m, _, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: &[f32],
    depth: usize,
    out: *mut f32,
    stride: usize,
) {
    let left = Operand::left(lhs, m, k);
    with_packing([packed_len(m, k)], |[tiles]| {
        left.pack(tiles);
        let out = Output { start: out, stride, write: Write::Overwrite };
        // SAFETY: as the caller vouches.
        unsafe { multiply(dims, tiles, rhs, depth.div_ceil(STEP), out) };
    });
}

/// The product of two matrices, on the calling thread.
///
/// # Safety
/// `out` must be valid for `m` rows of `n` floats that lie `stride` apart, not touched by anything
/// else; the operands must hold their matrices.
pub(super) unsafe fn single_product(
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    out: *mut f32,
    stride: usize,
    write: Write<'_>,
) {
    for step in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - step);
        let write = if step > 0 { Write::Add } else { write };
        let left = Operand::left(lhs.from(0, step), m, depth);
        let right = Operand::right(rhs.from(step, 0), n, depth);
        with_packing([packed_len(m, depth), packed_len(n, depth)], |[left_tiles, right_tiles]| {
            left.pack(left_tiles);
            right.pack(right_tiles);
            let (out, steps) = (Output { start: out, stride, write }, depth.div_ceil(STEP));
            // SAFETY: as the caller vouches.
            unsafe { multiply([m, n, depth], left_tiles, right_tiles, steps, out) };
        });
    }
}

/// Repeats one block whose operands stay in the first cache; returns its floating-point operations.
pub(super) fn resident_flops(repetitions: usize) -> f64 {
    const SIDE: usize = 2 * TILE;
    const DEPTH: usize = 256;
    let ones = vec![1.0; SIDE * DEPTH];
    let operand =
        |form| Operand { matrix: Matrix::rows(&ones, DEPTH), len: SIDE, depth: DEPTH, form };
    let len = packed_len(SIDE, DEPTH);
    let mut out = [0.0; SIDE * SIDE];
    with_packing([len, len], |[left, right]| {
        operand(Form::Left).pack(left);
        operand(Form::Right).pack(right);
        for _ in 0..repetitions {
            let output = Output { start: out.as_mut_ptr(), stride: SIDE, write: Write::Overwrite };
            // SAFETY: the operands were copied, the output has these dimensions.
            unsafe { multiply([SIDE, SIDE, DEPTH], left, right, DEPTH / STEP, output) };
        }
    });
    std::hint::black_box(out);
    2.0 * (SIDE * SIDE * DEPTH) as f64
}
