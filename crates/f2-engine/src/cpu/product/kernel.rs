//! The microkernel of the matrix product: tiles of the output that stay in registers.
//!
//! A tile is a few rows by one or two registers of columns. At every step one element of the left
//! operand is broadcast for each row and multiplied with the right operand's columns: one fused
//! multiply-add per accumulator. An output element is one chain of such steps for any tile shape,
//! so all shapes and instruction sets with FMA give the same bits.

#[cfg(not(target_arch = "aarch64"))]
use super::registers::Portable;
use super::registers::Register;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::Simd;

/// Columns in a panel of the right operand: one register of AVX-512, two of AVX2, four of NEON.
pub(super) const COLUMNS: usize = 16;

/// Floats of a cache line.
const LINE: usize = 16;
/// How far ahead rows are prefetched, in tiles: memory latency is shorter than the time of a tile.
const TILES_AHEAD: usize = 1;

/// The initial value of an output element, to which the product is added.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Write<'a> {
    /// Zero.
    Overwrite,
    /// The element's old value.
    Add,
    /// The bias of its column.
    Bias(&'a [f32]),
}

impl Write<'_> {
    /// The same for the columns from `column` on.
    pub(super) fn from(self, column: usize) -> Self {
        match self {
            Self::Bias(bias) => Self::Bias(&bias[column..]),
            other => other,
        }
    }
}

/// A block of the output and its operands.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Rows, columns and depth.
    pub(super) dims: [usize; 3],
    pub(super) lhs: Left<'a>,
    /// Panels `[depth, 16]`; padding columns may have any value.
    pub(super) rhs: &'a [f32],
    /// The stride from one panel to the next.
    pub(super) panel: usize,
    pub(super) out: *mut f32,
    pub(super) stride: usize,
    pub(super) write: Write<'a>,
}

/// The left operand of a block.
#[derive(Clone, Copy)]
pub(super) enum Left<'a> {
    /// Rows with this stride, read in place.
    Rows(&'a [f32], usize),
    /// Rows with this stride, streamed from memory once and in order, with prefetching. The last
    /// number is the index of the block's first step within the row.
    Streamed(&'a [f32], usize, usize),
    /// Packed: `[rows / tile, depth, tile]`.
    Packed(&'a [f32]),
}

/// Rows in a tile. Its accumulators, the registers of columns and one for the left operand's
/// element must fit the register file: 32 registers with AVX-512 and NEON, 16 with AVX2 and SSE.
#[cfg(target_arch = "x86_64")]
const AVX512_ROWS: usize = 12;
#[cfg(target_arch = "x86_64")]
const AVX2_ROWS: usize = 6;
#[cfg(target_arch = "aarch64")]
const NEON_ROWS: usize = 6;
#[cfg(not(target_arch = "aarch64"))]
const PORTABLE_ROWS: usize = 2;

/// Rows in a tile of the instruction set in use.
pub(super) fn tile_rows() -> usize {
    #[cfg(target_arch = "x86_64")]
    return match Simd::used() {
        Simd::Amx | Simd::Avx512 => AVX512_ROWS,
        Simd::Avx2 => AVX2_ROWS,
        Simd::Baseline => PORTABLE_ROWS,
    };
    #[cfg(target_arch = "aarch64")]
    return NEON_ROWS;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    PORTABLE_ROWS
}

/// Computes a block.
///
/// # Safety
/// The operands must hold the block's rows and columns, `out` must be valid for its rows and
/// columns, and nothing else may access `out`.
pub(super) unsafe fn multiply(block: Block<'_>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the features are available; the caller guarantees the rest.
    unsafe {
        match Simd::used() {
            Simd::Amx | Simd::Avx512 => avx512(block),
            Simd::Avx2 => avx2(block),
            Simd::Baseline => portable(block),
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: NEON is part of the target; the caller guarantees the rest.
    unsafe {
        tiles::<std::arch::aarch64::float32x4_t, NEON_ROWS, 4, 2>(block);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: guaranteed by the caller.
    unsafe {
        portable(block);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512(block: Block<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { tiles::<std::arch::x86_64::__m512, AVX512_ROWS, 2, 1>(block) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(block: Block<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { tiles::<std::arch::x86_64::__m256, AVX2_ROWS, 2, 1>(block) }
}

#[cfg(not(target_arch = "aarch64"))]
unsafe fn portable(block: Block<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { tiles::<Portable, PORTABLE_ROWS, 4, 2>(block) }
}

/// All tiles of a block: `WIDE` registers of columns at a time, or `NARROW` for the last columns if
/// they fit.
#[inline(always)]
unsafe fn tiles<R: Register, const ROWS: usize, const WIDE: usize, const NARROW: usize>(
    block: Block<'_>,
) {
    let [_, columns, _] = block.dims;
    let mut column = 0;
    while column < columns {
        let rest = columns - column;
        // SAFETY: these columns lie within the block.
        unsafe {
            if rest <= NARROW * R::LANES {
                strip::<R, ROWS, NARROW>(block, column);
                column += NARROW * R::LANES;
            } else {
                strip::<R, ROWS, WIDE>(block, column);
                column += WIDE * R::LANES;
            }
        }
    }
}

/// The tiles in `WIDTH` registers of columns, from top to bottom.
#[inline(always)]
unsafe fn strip<R: Register, const ROWS: usize, const WIDTH: usize>(
    block: Block<'_>,
    column: usize,
) {
    let [rows, columns, depth] = block.dims;
    let strip = Strip::<WIDTH> {
        panels: std::array::from_fn(|register| {
            let column = column + register * R::LANES;
            let start = column / COLUMNS * block.panel + column % COLUMNS;
            block.rhs[start..][..(depth - 1) * COLUMNS + R::LANES].as_ptr()
        }),
        depth,
        stride: block.stride,
        columns: columns - column,
        write: match block.write {
            Write::Bias(bias) => Write::Bias(&bias[column..]),
            other => other,
        },
    };
    for row in (0..rows).step_by(ROWS) {
        let count = ROWS.min(rows - row);
        // SAFETY: the tile lies within the block.
        unsafe {
            let out = block.out.add(row * block.stride + column);
            match block.lhs {
                Left::Rows(lhs, stride) => {
                    let left = InPlace { start: lhs.as_ptr().add(row * stride), stride };
                    strip.tile::<R, _, ROWS>(left, count, out);
                }
                Left::Streamed(lhs, stride, step) => {
                    let rows = InPlace { start: lhs.as_ptr().add(row * stride), stride };
                    let ahead = TILES_AHEAD * ROWS * stride + (ROWS - 1) * step;
                    let left = Streamed { rows, ahead };
                    strip.tile::<R, _, ROWS>(left, count, out);
                }
                Left::Packed(lhs) => {
                    let panel = &lhs[row * depth..(row + ROWS) * depth];
                    strip.tile::<R, _, ROWS>(Panel::<ROWS> { start: panel.as_ptr() }, count, out);
                }
            }
        }
    }
}

/// The left operand as a tile reads it.
trait LeftTile: Copy {
    /// The address of a row's element at a step.
    ///
    /// # Safety
    /// Row and step must lie within the operand.
    unsafe fn at(self, row: usize, step: usize) -> *const f32;

    /// Prefetches later elements.
    #[inline(always)]
    fn prefetch<const ROWS: usize>(self, _step: usize) {}

    /// The operand without its first `rows` rows.
    ///
    /// # Safety
    /// The operand must have that many rows.
    unsafe fn skip(self, rows: usize) -> Self;
}

/// Rows `stride` apart, each contiguous.
#[derive(Clone, Copy)]
struct InPlace {
    start: *const f32,
    stride: usize,
}

impl LeftTile for InPlace {
    #[inline(always)]
    unsafe fn at(self, row: usize, step: usize) -> *const f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.start.add(row * self.stride + step) }
    }

    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { start: unsafe { self.start.add(rows * self.stride) }, ..self }
    }
}

/// Rows streamed from memory. While the rows of one tile are multiplied, those of the next are
/// prefetched in order at an even rate: a core has few line-fill buffers, and demand loads need
/// some of them.
#[derive(Clone, Copy)]
struct Streamed {
    rows: InPlace,
    ahead: usize,
}

impl LeftTile for Streamed {
    #[inline(always)]
    unsafe fn at(self, row: usize, step: usize) -> *const f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.rows.at(row, step) }
    }

    #[inline(always)]
    fn prefetch<const ROWS: usize>(self, step: usize) {
        // One line per row for every `LINE` steps, evenly spaced.
        if step * ROWS % LINE < ROWS {
            let line = step * ROWS / LINE * LINE;
            prefetch(self.rows.start.wrapping_add(self.ahead + line));
        }
    }

    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { rows: unsafe { self.rows.skip(rows) }, ..self }
    }
}

/// A packed panel, `[depth, TILE]`.
#[derive(Clone, Copy)]
struct Panel<const TILE: usize> {
    start: *const f32,
}

impl<const TILE: usize> LeftTile for Panel<TILE> {
    #[inline(always)]
    unsafe fn at(self, row: usize, step: usize) -> *const f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.start.add(step * TILE + row) }
    }

    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { start: unsafe { self.start.add(rows) } }
    }
}

/// Prefetches the cache line of an address, which need not be valid.
#[inline(always)]
fn prefetch(address: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, for which any address is allowed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T2, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T2>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// `WIDTH` registers of columns of the right operand, and how their products are written.
#[derive(Clone, Copy)]
struct Strip<'a, const WIDTH: usize> {
    /// The first step of each register's columns; every next step is [`COLUMNS`] further on.
    panels: [*const f32; WIDTH],
    depth: usize,
    stride: usize,
    /// The number of columns left in the block.
    columns: usize,
    write: Write<'a>,
}

impl<const WIDTH: usize> Strip<'_, WIDTH> {
    /// A tile of `count` rows, at most `ROWS`. Fewer rows are split into tiles of 8, 4, 2 and 1:
    /// the cost per row hardly depends on the size of a tile.
    ///
    /// # Safety
    /// The left operand must hold the rows, and `out` must be valid for them.
    #[inline(always)]
    unsafe fn tile<R: Register, L: LeftTile, const ROWS: usize>(
        self,
        left: L,
        count: usize,
        out: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller, row by row.
        unsafe {
            if count == ROWS {
                return self.store::<R, ROWS>(self.sums::<R, L, ROWS>(left), out);
            }
            let mut row = 0;
            if count - row >= 8 {
                self.rows::<R, L, 8>(left, &mut row, out);
            }
            if count - row >= 4 {
                self.rows::<R, L, 4>(left, &mut row, out);
            }
            if count - row >= 2 {
                self.rows::<R, L, 2>(left, &mut row, out);
            }
            if count - row >= 1 {
                self.rows::<R, L, 1>(left, &mut row, out);
            }
        }
    }

    /// A tile of `ROWS` rows from `row` on, which it advances.
    ///
    /// # Safety
    /// As for [`Self::tile`].
    #[inline(always)]
    unsafe fn rows<R: Register, L: LeftTile, const ROWS: usize>(
        self,
        left: L,
        row: &mut usize,
        out: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sums = self.sums::<R, L, ROWS>(left.skip(*row));
            self.store::<R, ROWS>(sums, out.add(*row * self.stride));
        }
        *row += ROWS;
    }

    /// The products of `ROWS` rows.
    ///
    /// # Safety
    /// The left operand must hold the rows.
    #[inline(always)]
    unsafe fn sums<R: Register, L: LeftTile, const ROWS: usize>(
        self,
        left: L,
    ) -> [[R; WIDTH]; ROWS] {
        // SAFETY: `strip` checked the panels; the caller guarantees the rows.
        unsafe {
            let mut sums = [[R::zero(); WIDTH]; ROWS];
            for step in 0..self.depth {
                left.prefetch::<ROWS>(step);
                let columns = self.panels.map(|panel| R::load(panel.add(step * COLUMNS)));
                for row in 0..ROWS {
                    let element = R::splat(left.at(row, step));
                    for register in 0..WIDTH {
                        sums[row][register] =
                            element.mul_add(columns[register], sums[row][register]);
                    }
                }
            }
            sums
        }
    }

    /// Writes the sums. With loops over values, since closures or references would spill the sums
    /// from registers.
    ///
    /// # Safety
    /// `out` must be valid for these rows of the strip's columns.
    #[inline(always)]
    unsafe fn store<R: Register, const ROWS: usize>(self, sums: [[R; WIDTH]; ROWS], out: *mut f32) {
        for row in 0..ROWS {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let out = out.add(row * self.stride);
                if self.columns >= WIDTH * R::LANES {
                    self.store_row(sums[row], out);
                } else {
                    let mut whole = [0.0; 2 * COLUMNS];
                    for register in 0..WIDTH {
                        sums[row][register].store(whole[register * R::LANES..].as_mut_ptr());
                    }
                    let out = std::slice::from_raw_parts_mut(out, self.columns);
                    store_short_row(self.write, &whole, out);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_row<R: Register>(self, sums: [R; WIDTH], out: *mut f32) {
        for register in 0..WIDTH {
            let place = register * R::LANES;
            // SAFETY: guaranteed by the caller; a bias is as long as its columns.
            unsafe {
                let out = out.add(place);
                let first = match self.write {
                    Write::Overwrite => {
                        sums[register].store(out);
                        continue;
                    }
                    Write::Add => R::load(out),
                    Write::Bias(bias) => R::load(bias[place..][..R::LANES].as_ptr()),
                };
                first.add(sums[register]).store(out);
            }
        }
    }
}

/// Writes a row with fewer columns than its registers hold.
#[inline(never)]
fn store_short_row(write: Write<'_>, sums: &[f32; 2 * COLUMNS], out: &mut [f32]) {
    for column in 0..out.len() {
        let first = match write {
            Write::Overwrite => 0.0,
            Write::Add => out[column],
            Write::Bias(bias) => bias[column],
        };
        out[column] = first + sums[column];
    }
}

#[cfg(test)]
mod tests {
    use super::super::registers::Portable;
    use super::*;

    /// Small integers: every order of adding gives the same sum.
    #[test]
    fn all_versions_agree() {
        let dims @ [rows, columns, depth] = [23, 32, 11];
        let lhs: Vec<f32> = (0..rows * depth).map(|i| (i % 7) as f32 - 3.0).collect();
        let rhs: Vec<f32> = (0..columns * depth).map(|i| (i % 5) as f32 - 2.0).collect();
        let run = |multiply: unsafe fn(Block<'_>)| {
            let mut out = vec![0.0; rows * columns];
            let (lhs, write) = (Left::Rows(&lhs, depth), Write::Overwrite);
            let (rhs, panel, start) = (&rhs, COLUMNS * depth, out.as_mut_ptr());
            let block = Block { dims, lhs, rhs, panel, out: start, stride: columns, write };
            // SAFETY: the operands and the output have these dimensions.
            unsafe { multiply(block) };
            out
        };
        let expected = run(tiles::<Portable, 1, 4, 2>);
        assert_eq!(run(multiply), expected);
        assert_eq!(run(tiles::<Portable, 2, 4, 2>), expected);
        assert_eq!(run(tiles::<Portable, 12, 2, 1>), expected);
    }
}
