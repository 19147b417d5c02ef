//! Matrix products, split among the threads.
//!
//! Blocks of the right operand are packed in the order in which tiles of the output read them; the
//! left operand is read in place if its rows are contiguous. Both blocks fit the L2 cache.
//!
//! Depending on its shape, a product is split in one of three ways: [`few_rows`] for a handful of
//! rows, [`row_blocks`] for most shapes, and by columns if there are many more columns than rows.

#[cfg(target_arch = "x86_64")]
mod bf16;
mod few_rows;
mod kernel;
mod pack;
mod packed;
mod registers;
mod row_blocks;
mod speed;

use std::ops::Range;

use kernel::{Block, Left, tile_rows};

pub(super) use self::few_rows::FEW_ROWS;
pub(super) use self::kernel::Write;
pub(super) use self::packed::{Packed, packed_product};
pub(super) use self::row_blocks::Then;
pub use self::speed::ProductSpeeds;
use super::threads::{Shared, Threads, with_packing};

/// Rows, columns and depth of a block: 96 and 256 KiB of the two operands.
const ROWS: usize = 96;
const COLUMNS: usize = 256;
const DEPTH: usize = 256;

/// The minimum number of columns in a task, since each task reads the whole left operand.
const FEWEST_COLUMNS: usize = 64;

/// A matrix to read: element `(i, j)` is at `i · row_stride + j · column_stride`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    elements: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix with contiguous rows `stride` elements apart.
    pub(super) fn rows(elements: &'a [f32], stride: usize) -> Self {
        Self { elements, row_stride: stride, column_stride: 1 }
    }

    /// The transpose, in the same memory.
    pub(super) fn transposed(self) -> Self {
        Self { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    /// The submatrix from this element on.
    fn from(self, row: usize, column: usize) -> Self {
        let start = row * self.row_stride + column * self.column_stride;
        Self { elements: self.elements.get(start..).unwrap_or(&[]), ..self }
    }

    fn fits(&self, rows: usize, columns: usize) -> bool {
        let last = (rows - 1) * self.row_stride + (columns - 1) * self.column_stride;
        last < self.elements.len()
    }
}

/// A product of `lhs: [m, k]` and `rhs: [k, n]`, and how it is written.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    /// `[m, n, k]`.
    pub(super) dims: [usize; 3],
    pub(super) lhs: Matrix<'a>,
    pub(super) rhs: Matrix<'a>,
    pub(super) write: Write<'a>,
}

impl Operands<'_> {
    /// Panics if a matrix is smaller than its dimensions.
    fn check(&self) {
        let [m, n, k] = self.dims;
        assert!(k > 0 && self.lhs.fits(m, k) && self.rhs.fits(k, n), "an operand is too small");
    }

    /// The part of the product for a range of output columns.
    fn columns(self, range: Range<usize>) -> Self {
        let Self { dims: [m, _, k], rhs, write, .. } = self;
        let dims = [m, range.len(), k];
        Self { dims, rhs: rhs.from(0, range.start), write: write.from(range.start), ..self }
    }
}

/// The precision the operands of a product are rounded to. Sums are `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    F32,
    /// Only if [`Simd::has_bf16`](crate::Simd::has_bf16).
    Bf16,
}

impl Precision {
    /// The precisions available on this processor.
    #[cfg(test)]
    fn available() -> Vec<Self> {
        let bf16 = crate::Simd::has_bf16().then_some(Self::Bf16);
        std::iter::once(Self::F32).chain(bf16).collect()
    }
}

/// Products in one precision, on all threads.
#[derive(Clone, Copy)]
pub(super) struct Products<'a> {
    pub(super) threads: &'a Threads,
    pub(super) precision: Precision,
}

impl Products<'_> {
    /// Writes `lhs · rhs` to `out` according to `write`, with `lhs: [m, k]`, `rhs: [k, n]` and
    /// `out: [m, n]`.
    pub(super) fn product(
        self,
        dims: [usize; 3],
        lhs: Matrix<'_>,
        rhs: Matrix<'_>,
        out: &mut [f32],
        write: Write<'_>,
    ) {
        self.product_then(dims, lhs, rhs, out, write, None);
    }

    /// [`Self::product`] with an epilogue, applied to parts of the output while they are in the
    /// cache.
    pub(super) fn product_then(
        self,
        dims @ [m, n, _]: [usize; 3],
        lhs: Matrix<'_>,
        rhs: Matrix<'_>,
        out: &mut [f32],
        write: Write<'_>,
        then: Option<Then<'_>>,
    ) {
        if m == 0 || n == 0 {
            return;
        }
        let out = &mut out[..m * n];
        let operands = Operands { dims, lhs, rhs, write };
        operands.check();
        match self.precision {
            Precision::F32 => f32_product(self.threads, operands, out, then),
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 => bf16::product(self.threads, operands, out, then),
            #[cfg(not(target_arch = "x86_64"))]
            Precision::Bf16 => unreachable!("no other target has bf16"),
        }
    }
}

fn f32_product(threads: &Threads, operands: Operands<'_>, out: &mut [f32], then: Option<Then<'_>>) {
    let [m, n, _] = operands.dims;
    if few_rows::suits(operands) {
        few_rows::product(threads, operands, out);
    } else if row_blocks::suits(operands) {
        return row_blocks::product(threads, operands, out, then);
    } else {
        by_columns(threads, operands, out);
    }
    if let Some(then) = then {
        let rows = m.div_ceil(2 * threads.count()).min(ROWS);
        threads.zip_chunks([(out, rows * n)], |block, [out]| then(block * rows * n, out));
    }
}

/// Splits by columns: every task packs its own columns of the right operand and reads the whole
/// left one.
fn by_columns(threads: &Threads, operands: Operands<'_>, out: &mut [f32]) {
    let [_, n, _] = operands.dims;
    let pieces = threads.shares(n, kernel::COLUMNS, FEWEST_COLUMNS);
    let out = Shared::new(out);
    threads.each(pieces.len(), |piece| {
        let range = pieces[piece].clone();
        let start = range.start;
        // SAFETY: only this task writes to the columns `range` of the output.
        unsafe { out.product(Precision::F32, start, operands.columns(range), n) };
    });
}

impl Shared<'_> {
    /// Computes a product on the calling thread, with its first element at `offset` and its rows
    /// `stride` apart.
    ///
    /// # Safety
    /// No other thread may touch these elements meanwhile.
    pub(super) unsafe fn product(
        &self,
        precision: Precision,
        offset: usize,
        operands: Operands<'_>,
        stride: usize,
    ) {
        let [m, n, _] = operands.dims;
        if m == 0 || n == 0 {
            return;
        }
        assert!(stride >= n && offset + (m - 1) * stride + n <= self.len());
        operands.check();
        // SAFETY: within the slice, and not touched by another thread.
        unsafe {
            let out = self.start().add(offset);
            match precision {
                Precision::F32 => blocks(operands, out, stride),
                #[cfg(target_arch = "x86_64")]
                Precision::Bf16 => bf16::single_product(operands, out, stride),
                #[cfg(not(target_arch = "x86_64"))]
                Precision::Bf16 => unreachable!("no other target has bf16"),
            }
        }
    }
}

/// The length of nearly equal parts of at most `most`: a short last one would cost a whole pass.
fn part_len(len: usize, most: usize) -> usize {
    len.div_ceil(len.div_ceil(most))
}

/// Computes a product block by block, on the calling thread.
///
/// # Safety
/// `out` must be valid for `m` rows of `n` floats `stride` apart and not be accessed by anything
/// else; the operands must hold their matrices.
unsafe fn blocks(operands: Operands<'_>, out: *mut f32, stride: usize) {
    let Operands { dims: [m, n, k], lhs, rhs, write } = operands;
    let tile = tile_rows();
    let depth = part_len(k, DEPTH);
    let left_len = if lhs.column_stride == 1 { 0 } else { ROWS.next_multiple_of(tile) * depth };
    with_packing([COLUMNS * depth, left_len], |[right, left]| {
        for column in (0..n).step_by(COLUMNS) {
            let columns = COLUMNS.min(n - column);
            for step in (0..k).step_by(depth) {
                let depth = depth.min(k - step);
                let write = if step > 0 { Write::Add } else { write.from(column) };
                pack::right(rhs.from(step, column), depth, columns, right);
                for row in (0..m).step_by(ROWS) {
                    let rows = ROWS.min(m - row);
                    let lhs = self::left(lhs.from(row, step), rows, depth, tile, left);
                    let dims = [rows, columns, depth];
                    // SAFETY: a block of the matrices guaranteed by the caller.
                    unsafe {
                        let out = out.add(row * stride + column);
                        let (rhs, panel) = (&*right, kernel::COLUMNS * depth);
                        kernel::multiply(Block { dims, lhs, rhs, panel, out, stride, write });
                    }
                }
            }
        }
    });
}

/// The left operand as the tiles read it: in place if its rows are contiguous, otherwise packed.
fn left<'a>(
    lhs: Matrix<'a>,
    rows: usize,
    depth: usize,
    tile: usize,
    packed: &'a mut [f32],
) -> Left<'a> {
    if lhs.column_stride == 1 {
        return Left::Rows(lhs.elements, lhs.row_stride);
    }
    pack::left(lhs, rows, depth, tile, packed);
    Left::Packed(packed)
}

/// Multiplies a block that stays in the L1 cache `repetitions` times; returns the floating-point
/// operations of one multiplication.
pub(super) fn resident_flops(precision: Precision, repetitions: usize) -> f64 {
    const ROWS: usize = 12;
    const COLUMNS: usize = 2 * kernel::COLUMNS;
    #[cfg(target_arch = "x86_64")]
    if precision == Precision::Bf16 {
        return bf16::resident_flops(repetitions);
    }
    debug_assert_eq!(precision, Precision::F32);
    let (lhs, rhs) = (vec![0.5; ROWS * DEPTH], vec![0.25; COLUMNS * DEPTH]);
    let mut out = [0.0; ROWS * COLUMNS];
    for _ in 0..repetitions {
        let block = Block {
            dims: [ROWS, COLUMNS, DEPTH],
            lhs: Left::Rows(&lhs, DEPTH),
            rhs: &rhs,
            panel: 0,
            out: out.as_mut_ptr(),
            stride: COLUMNS,
            write: Write::Overwrite,
        };
        // SAFETY: the three matrices have these dimensions.
        unsafe { kernel::multiply(block) };
    }
    std::hint::black_box(out);
    2.0 * (ROWS * COLUMNS * DEPTH) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(dims: [usize; 3], lhs: &[f32], rhs: &[f32], out: &mut [f32]) {
        let [m, n, k] = dims;
        for i in 0..m {
            for j in 0..n {
                out[i * n + j] += (0..k).map(|l| lhs[i * k + l] * rhs[l * n + j]).sum::<f32>();
            }
        }
    }

    #[test]
    fn agrees_with_the_definition() {
        let threads = Threads::new(3).unwrap();
        for dims @ [m, n, k] in [[1, 1, 1], [37, 5, 19], [7, 53, 3], [65, 64, 130], [200, 300, 600]]
        {
            let lhs: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 - 6.0).collect();
            let rhs: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
            let mut expected = vec![1.0; m * n];
            naive(dims, &lhs, &rhs, &mut expected);
            let mut out = vec![1.0; m * n];
            let (a, b) = (Matrix::rows(&lhs, k), Matrix::rows(&rhs, n));
            for precision in Precision::available() {
                out.fill(1.0);
                Products { threads: &threads, precision }.product(dims, a, b, &mut out, Write::Add);
                assert_eq!(out, expected, "{precision:?}");
            }
        }
    }

    /// The product of a row has the same bits alone, in a small batch and in a large one, and with
    /// any number of threads.
    #[test]
    fn rows_do_not_depend_on_their_batch() {
        let [m, n, k] = [70, 213, 517];
        let lhs: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.37).sin()).collect();
        let rhs: Vec<f32> = (0..n * k).map(|i| (i as f32 * 0.73).cos()).collect();
        let bias: Vec<f32> = (0..n).map(|i| i as f32 * 0.1).collect();
        for precision in Precision::available() {
            let run = |threads: usize, m: usize| {
                let threads = &Threads::new(threads).unwrap();
                let mut out = vec![0.5; m * n];
                let (lhs, rhs) = (Matrix::rows(&lhs, k), Matrix::rows(&rhs, k).transposed());
                let products = Products { threads, precision };
                products.product([m, n, k], lhs, rhs, &mut out, Write::Bias(&bias));
                products.product([m, n, k], lhs, rhs, &mut out, Write::Add);
                out
            };
            let whole = run(1, m);
            for (threads, rows) in [(3, 70), (1, 1), (2, 7), (2, 32), (3, 33)] {
                assert_eq!(run(threads, rows), whole[..rows * n], "{precision:?}");
            }
        }
    }

    /// Rounds to bf16, to nearest with ties to even, by definition.
    fn rounded(x: f32) -> f64 {
        let bits = x.to_bits();
        let half = 0x7fff + (bits >> 16 & 1);
        f64::from(f32::from_bits((bits + half) & 0xffff_0000))
    }

    /// Compared with a sum in `f64` of operands rounded by definition. The remaining error is the
    /// rounding of `f32` sums: at most 2⁻²⁴ of the terms' size for each addition, in practice far
    /// less.
    #[test]
    fn bf16_rounds_operands_and_nothing_else() {
        if !crate::Simd::has_bf16() {
            eprintln!("skipped: this processor has no bf16 instructions");
            return;
        }
        let threads = &Threads::new(2).unwrap();
        let products = Products { threads, precision: Precision::Bf16 };
        for dims @ [m, n, k] in [[3, 5, 7], [64, 96, 64], [70, 213, 517], [33, 40, 1100]] {
            let lhs: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.37).sin()).collect();
            let rhs: Vec<f32> = (0..n * k).map(|i| (i as f32 * 0.73).cos()).collect();
            let mut out = vec![0.0; m * n];
            let (a, b) = (Matrix::rows(&lhs, k), Matrix::rows(&rhs, n));
            products.product(dims, a, b, &mut out, Write::Overwrite);
            for (place, &actual) in out.iter().enumerate() {
                let (i, j) = (place / n, place % n);
                let terms = (0..k).map(|l| rounded(lhs[i * k + l]) * rounded(rhs[l * n + j]));
                let (sum, size) =
                    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let error = (f64::from(actual) - sum).abs();
                assert!(error <= 2e-6 * size, "{dims:?} at {place}: {actual} instead of {sum}");
            }
        }
    }
}
