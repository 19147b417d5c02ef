//! Products with a right operand that is packed once and used by several of them.

#[cfg(target_arch = "x86_64")]
use super::bf16;
use super::kernel::{self, Block, COLUMNS, Left, Write};
use super::{Matrix, Precision, pack};
use crate::cpu::threads::Shared;

/// A right operand packed in panels of 16 columns, or in tiles of bf16. A product may use only its
/// first rows and columns.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Packed<'a> {
    precision: Precision,
    panels: &'a [f32],
    depth: usize,
    columns: usize,
}

impl<'a> Packed<'a> {
    /// Packs `[depth, columns]` of a matrix into `panels`.
    pub(in crate::cpu) fn new(
        precision: Precision,
        matrix: Matrix<'_>,
        depth: usize,
        columns: usize,
        panels: &'a mut [f32],
    ) -> Self {
        assert!(matrix.fits(depth, columns), "the operand is too small");
        assert!(panels.len() >= Self::len(depth, columns), "the panels do not fit");
        match precision {
            Precision::F32 => pack::right(matrix, depth, columns, panels),
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 => bf16::pack_right(matrix, depth, columns, panels),
            #[cfg(not(target_arch = "x86_64"))]
            Precision::Bf16 => unreachable!("no other target has bf16"),
        }
        Self { precision, panels, depth, columns }
    }

    /// The length of the panels in floats; sufficient for tiles of bf16, too.
    pub(in crate::cpu) fn len(depth: usize, columns: usize) -> usize {
        columns.next_multiple_of(COLUMNS) * depth.next_multiple_of(COLUMNS)
    }
}

/// `out = lhs · rhs` on the calling thread; the rows of `lhs` must be contiguous.
pub(in crate::cpu) fn packed_product(
    dims: [usize; 3],
    lhs: Matrix<'_>,
    rhs: Packed<'_>,
    out: &mut [f32],
    stride: usize,
) {
    // SAFETY: the output is borrowed exclusively.
    unsafe { Shared::new(out).packed_product(0, dims, lhs, rhs, stride) }
}

impl Shared<'_> {
    /// Computes `lhs · rhs` on the calling thread, with its first element at `offset` and its rows
    /// `stride` apart.
    ///
    /// # Safety
    /// No other thread may touch these elements meanwhile.
    pub(in crate::cpu) unsafe fn packed_product(
        &self,
        offset: usize,
        dims: [usize; 3],
        lhs: Matrix<'_>,
        rhs: Packed<'_>,
        stride: usize,
    ) {
        let [m, n, k] = dims;
        assert!(m > 0 && stride >= n && offset + (m - 1) * stride + n <= self.len());
        assert!(lhs.column_stride == 1 && lhs.fits(m, k), "the left operand is too small");
        assert!(k <= rhs.depth && n <= rhs.columns, "the right operand is too small");
        // SAFETY: within the slice, and not touched by another thread.
        unsafe {
            let out = self.start().add(offset);
            match rhs.precision {
                Precision::F32 => kernel::multiply(Block {
                    dims,
                    lhs: Left::Rows(lhs.elements, lhs.row_stride),
                    rhs: rhs.panels,
                    panel: COLUMNS * rhs.depth,
                    out,
                    stride,
                    write: Write::Overwrite,
                }),
                #[cfg(target_arch = "x86_64")]
                Precision::Bf16 => {
                    bf16::packed_product(dims, lhs, rhs.panels, rhs.depth, out, stride);
                }
                #[cfg(not(target_arch = "x86_64"))]
                Precision::Bf16 => unreachable!("no other target has bf16"),
            }
        }
    }
}
