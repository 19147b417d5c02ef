//! Matrix products, split over the threads.

use super::shared::Shared;
use super::threads::Threads;

/// A matrix to read: element `(i, j)` lies at `i · row_stride + j · column_stride`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    elements: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows that lie `stride` elements apart.
    pub(super) fn rows(elements: &'a [f32], stride: usize) -> Self {
        Self { elements, row_stride: stride, column_stride: 1 }
    }

    /// The same memory, read by columns.
    pub(super) fn transposed(self) -> Self {
        Self { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    fn fits(&self, rows: usize, columns: usize) -> bool {
        let last = (rows - 1) * self.row_stride + (columns - 1) * self.column_stride;
        last < self.elements.len()
    }
}

/// What becomes of the output's old content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Overwrite,
    Add,
}

/// `out = lhs · rhs` (or `+=`), with `lhs: [m, k]`, `rhs: [k, n]` and the rows of `out` lying
/// `stride` apart; on the calling thread.
pub(super) fn product(
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    out: &mut [f32],
    stride: usize,
    write: Write,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(stride >= n && (m - 1) * stride + n <= out.len(), "the output is too small");
    assert!(k == 0 || (lhs.fits(m, k) && rhs.fits(k, n)), "an operand is too small");
    // SAFETY: all three matrices lie within their slices, and `out` is borrowed exclusively.
    unsafe { block([m, n, k], lhs, rhs, out.as_mut_ptr(), stride, write) }
}

/// [`product`] on all threads: the longer side of the output is cut into one piece per thread.
pub(super) fn parallel_product(
    threads: &Threads,
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    out: &mut [f32],
    stride: usize,
    write: Write,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(stride >= n && (m - 1) * stride + n <= out.len(), "the output is too small");
    assert!(k == 0 || (lhs.fits(m, k) && rhs.fits(k, n)), "an operand is too small");
    let out = Shared::new(out);
    let by_rows = m >= n;
    let pieces = threads.pieces(if by_rows { m } else { n }, 16);
    threads.each(pieces.len(), |piece| {
        let range = pieces[piece].clone();
        if by_rows {
            let lhs = Matrix { elements: &lhs.elements[range.start * lhs.row_stride..], ..lhs };
            // SAFETY: rows `range` of the output, which no other piece touches.
            unsafe {
                out.product(range.start * stride, [range.len(), n, k], lhs, rhs, stride, write);
            }
        } else {
            let rhs = Matrix { elements: &rhs.elements[range.start * rhs.column_stride..], ..rhs };
            // SAFETY: columns `range` of the output, which no other piece touches.
            unsafe {
                out.product(range.start, [m, range.len(), k], lhs, rhs, stride, write);
            }
        }
    });
}

impl Shared<'_> {
    /// Writes `lhs · rhs` with its first element at `offset` and its rows `stride` apart.
    ///
    /// # Safety
    /// No other thread may touch these elements meanwhile.
    pub(super) unsafe fn product(
        &self,
        offset: usize,
        [m, n, k]: [usize; 3],
        lhs: Matrix<'_>,
        rhs: Matrix<'_>,
        stride: usize,
        write: Write,
    ) {
        if m == 0 || n == 0 {
            return;
        }
        assert!(stride >= n && offset + (m - 1) * stride + n <= self.len());
        assert!(k == 0 || (lhs.fits(m, k) && rhs.fits(k, n)), "an operand is too small");
        // SAFETY: within the matrix, and not touched by another thread.
        unsafe { block([m, n, k], lhs, rhs, self.start().add(offset), stride, write) }
    }
}

/// # Safety
/// `out` must be valid for `m` rows of `n` floats that lie `stride` apart, not touched by
/// anything else; the operands must hold their matrices.
unsafe fn block(
    [m, n, k]: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    out: *mut f32,
    stride: usize,
    write: Write,
) {
    let add = write == Write::Add;
    // SAFETY: the caller vouches for the three matrices.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            1,
            stride as isize,
            add,
            lhs.elements.as_ptr(),
            lhs.column_stride as isize,
            lhs.row_stride as isize,
            rhs.elements.as_ptr(),
            rhs.column_stride as isize,
            rhs.row_stride as isize,
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
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
        for dims @ [m, n, k] in [[1, 1, 1], [37, 5, 19], [7, 53, 3], [65, 64, 130], [3, 3, 0]] {
            let lhs: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 - 6.0).collect();
            let rhs: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
            let mut expected = vec![1.0; m * n];
            naive(dims, &lhs, &rhs, &mut expected);
            let mut out = vec![1.0; m * n];
            let (a, b) = (Matrix::rows(&lhs, k), Matrix::rows(&rhs, n));
            parallel_product(&threads, dims, a, b, &mut out, n, Write::Add);
            assert_eq!(out, expected);
        }
    }
}
