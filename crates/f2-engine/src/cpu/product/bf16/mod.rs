//! Products with operands rounded to bf16 and sums in `f32`: with AMX if the processor has it,
//! otherwise with the pairwise dot products of AVX-512.
//!
//! Both operands are packed in tiles of 16 rows (or columns) by 32 steps of the sum, 1 KiB each.
//! Every output element is summed over whole tiles in order, so results do not depend on batch size
//! or threads, bit for bit. The two instruction sets round differently within a tile and do not
//! give the same bits.

mod kernel;
mod pack;

use kernel::{Output, multiply};
use pack::{Form, Operand};

use super::row_blocks::Then;
use super::{Matrix, Operands, Write};
use crate::cpu::threads::{Shared, Threads, with_packing, with_shared};

/// Rows or columns in a tile.
const TILE: usize = 16;
/// Steps of the sum in a tile.
const STEP: usize = 32;
/// The size of a tile in floats.
const TILE_LEN: usize = TILE * STEP / 2;

/// Steps of the sum that are added to the output at a time.
const DEPTH: usize = 1024;
/// The size of the packed part of the right operand in floats: 1 MiB, which fits the L2 cache.
const COPIED: usize = 1 << 18;
/// The size of the packed part of a left operand shared by all threads, in floats: 8 MiB.
const COPIED_LEFT: usize = 1 << 21;
/// The minimum and maximum number of rows in a task: whole pairs of tiles.
const FEWEST_ROWS: usize = 2 * TILE;
const MOST_ROWS: usize = 4 * TILE;
/// Tiles packed by one task, in either direction.
const COPY: usize = 4;

/// The size in floats of `len` rows or columns by `depth` steps, packed into tiles.
pub(super) fn packed_len(len: usize, depth: usize) -> usize {
    len.div_ceil(TILE) * depth.div_ceil(STEP) * TILE_LEN
}

/// Computes a product, with contiguous rows of `out` and the epilogue `then`.
pub(super) fn product(
    threads: &Threads,
    operands: Operands<'_>,
    out: &mut [f32],
    then: Option<Then<'_>>,
) {
    let Operands { dims: [m, n, k], lhs, rhs, write } = operands;
    let out = Shared::new(out);
    for step in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - step);
        let width = (COPIED / packed_len(TILE, depth)).max(1) * TILE;
        // A left operand without contiguous rows is packed beforehand, in the order of its memory.
        let height = match lhs.column_stride {
            1 => m,
            _ => (COPIED_LEFT / packed_len(TILE, depth)).max(1) * TILE,
        };
        for (row, column) in blocks([m, n], [height, width]) {
            let [rows, columns] = [height.min(m - row), width.min(n - column)];
            let write = if step > 0 { Write::Add } else { write.from(column) };
            let left = Operand::left(lhs.from(row, step), rows, depth);
            let right = Operand::right(rhs.from(step, column), columns, depth);
            let place = Place { start: row * n + column, stride: n };
            let then = then.filter(|_| step + depth == k);
            block_product(threads, left, right, &out, place, write, then);
        }
    }
}

/// The first row and column of each block of a matrix, row by row.
fn blocks([m, n]: [usize; 2], [height, width]: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
    let rows = (0..m).step_by(height);
    rows.flat_map(move |row| (0..n).step_by(width).map(move |column| (row, column)))
}

/// The offset of a block of the output, and the stride of its rows.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    stride: usize,
}

/// A product whose right operand fits the cache, as does the left operand if it is packed for all
/// threads.
fn block_product(
    threads: &Threads,
    left: Operand<'_>,
    right: Operand<'_>,
    out: &Shared<'_>,
    place: Place,
    write: Write<'_>,
    then: Option<Then<'_>>,
) {
    let (columns, depth) = (right.len, right.depth);
    let shared = left.matrix.column_stride != 1;
    let left_len = if shared { packed_len(left.len, depth) } else { 0 };
    let right_len = packed_len(columns, depth);
    with_shared(right_len + left_len, |tiles| {
        let (right_tiles, left_tiles) = tiles.split_at_mut(right_len);
        copy(threads, right, right_tiles);
        if shared {
            copy(threads, left, left_tiles);
        }
        let (right_tiles, left_tiles) = (&*right_tiles, &*left_tiles);
        let blocks = threads.dwindling(left.len, FEWEST_ROWS, MOST_ROWS);
        threads.each(blocks.len(), |block| {
            let rows = blocks[block].clone();
            let start = place.start + rows.start * place.stride;
            let here = Place { start, ..place };
            // SAFETY: no other task has these rows.
            unsafe {
                if shared {
                    let tiles = &left_tiles[packed_len(rows.start, depth)..];
                    let dims = [rows.len(), columns, depth];
                    multiply_tiles(dims, tiles, right_tiles, out, here, write);
                } else {
                    let left = left.part(rows.start, rows.len());
                    multiply_rows(left, right_tiles, columns, out, here, write);
                }
            }
            let Some(then) = then else { return };
            // SAFETY: as above.
            let piece = |start, len| unsafe { out.piece(start, len) };
            if columns == place.stride {
                return then(start, piece(start, rows.len() * columns));
            }
            for start in (0..rows.len()).map(|row| start + row * place.stride) {
                then(start, piece(start, columns));
            }
        });
    });
}

/// Packs an operand into tiles on all threads, each reading contiguous memory.
fn copy(threads: &Threads, operand: Operand<'_>, tiles: &mut [f32]) {
    let tiles = Shared::new(tiles);
    if operand.matrix.column_stride == 1 {
        threads.each(operand.len.div_ceil(COPY * TILE), |task| {
            let first = task * COPY * TILE;
            let part = operand.part(first, (COPY * TILE).min(operand.len - first));
            let len = packed_len(part.len, part.depth);
            // SAFETY: no other task has these tiles.
            part.pack(unsafe { tiles.piece(packed_len(first, part.depth), len) });
        });
    } else {
        threads.each(operand.depth.div_ceil(COPY * STEP), |task| {
            let first = task * COPY * STEP;
            let steps = first..operand.depth.min(first + COPY * STEP);
            // SAFETY: no other task has the tiles of these steps.
            unsafe { operand.pack_steps(steps, &tiles) };
        });
    }
}

/// The product of some rows, packed here, with packed columns.
///
/// # Safety
/// No other thread may touch these rows of the output meanwhile.
unsafe fn multiply_rows(
    left: Operand<'_>,
    right: &[f32],
    columns: usize,
    out: &Shared<'_>,
    place: Place,
    write: Write<'_>,
) {
    with_packing([packed_len(left.len, left.depth)], |[tiles]| {
        left.pack(tiles);
        let dims = [left.len, columns, left.depth];
        // SAFETY: guaranteed by the caller.
        unsafe { multiply_tiles(dims, tiles, right, out, place, write) };
    });
}

/// The product of packed rows and columns.
///
/// # Safety
/// No other thread may touch these rows of the output meanwhile.
unsafe fn multiply_tiles(
    dims @ [rows, columns, depth]: [usize; 3],
    left: &[f32],
    right: &[f32],
    out: &Shared<'_>,
    Place { start, stride }: Place,
    write: Write<'_>,
) {
    assert!(stride >= columns && start + (rows - 1) * stride + columns <= out.len());
    // SAFETY: within the output, as asserted, and not touched by another thread.
    unsafe {
        let out = Output { start: out.start().add(start), stride, write };
        multiply(dims, left, right, depth.div_ceil(STEP), out);
    }
}

/// Packs `[depth, columns]` of a right operand into tiles, for several products.
pub(super) fn pack_right(matrix: Matrix<'_>, depth: usize, columns: usize, tiles: &mut [f32]) {
    Operand::right(matrix, columns, depth).pack(tiles);
}

/// The product with the first `k` steps and `n` columns of a packed right operand, on the calling
/// thread.
///
/// # Safety
/// `out` must be valid for `m` rows of `n` floats `stride` apart and not be accessed by anything
/// else; the operands must hold their matrices, the right one with `depth` steps.
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
        // SAFETY: guaranteed by the caller.
        unsafe { multiply(dims, tiles, rhs, depth.div_ceil(STEP), out) };
    });
}

/// The product of two matrices, on the calling thread.
///
/// # Safety
/// `out` must be valid for `m` rows of `n` floats `stride` apart and not be accessed by anything
/// else; the operands must hold their matrices.
pub(super) unsafe fn single_product(operands: Operands<'_>, out: *mut f32, stride: usize) {
    let Operands { dims: [m, n, k], lhs, rhs, write } = operands;
    for step in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - step);
        let write = if step > 0 { Write::Add } else { write };
        let left = Operand::left(lhs.from(0, step), m, depth);
        let right = Operand::right(rhs.from(step, 0), n, depth);
        with_packing([packed_len(m, depth), packed_len(n, depth)], |[left_tiles, right_tiles]| {
            left.pack(left_tiles);
            right.pack(right_tiles);
            let (out, steps) = (Output { start: out, stride, write }, depth.div_ceil(STEP));
            // SAFETY: guaranteed by the caller.
            unsafe { multiply([m, n, depth], left_tiles, right_tiles, steps, out) };
        });
    }
}

/// Multiplies a block that stays in the L1 cache `repetitions` times; returns the floating-point
/// operations of one multiplication.
pub(super) fn resident_flops(repetitions: usize) -> f64 {
    const SIDE: usize = 2 * TILE;
    const DEPTH: usize = 256;
    let ones = vec![1.0; SIDE * DEPTH];
    let operand =
        |form| Operand { matrix: Matrix::rows(&ones, DEPTH), len: SIDE, depth: DEPTH, form };
    let len = packed_len(SIDE, DEPTH);
    with_packing([len, len, SIDE * SIDE], |[left, right, out]| {
        operand(Form::Left).pack(left);
        operand(Form::Right).pack(right);
        for _ in 0..repetitions {
            let output = Output { start: out.as_mut_ptr(), stride: SIDE, write: Write::Overwrite };
            // SAFETY: the operands are packed, and the output has these dimensions.
            unsafe { multiply([SIDE, SIDE, DEPTH], left, right, DEPTH / STEP, output) };
        }
    });
    2.0 * (SIDE * SIDE * DEPTH) as f64
}
