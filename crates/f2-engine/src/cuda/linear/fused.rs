//! Products with GELU in the same kernel, on compute capability 9.0: the library's epilogue takes as
//! long as a separate pass.

use std::env;
use std::sync::LazyLock;

use super::ColumnSums;
use crate::cuda::runtime::{Address, Grid, Kernel, TensorMap, kernels};
use crate::cuda::{Cuda, Precision};

/// Rows, columns and the length of sums; both operands; the remaining inputs and outputs.
type Product = (usize, usize, usize, TensorMap, TensorMap, Address, Address, Address);

kernels! {
    PRODUCT_GELU: Product = product_gelu_hopper;
    PRODUCT_GELU_BACKWARD: Product = product_gelu_backward_hopper;
}

/// Rows of a tile, columns of a block, and the sums that are processed at once.
const TILE_ROWS: usize = 64;
const BLOCK_COLUMNS: usize = 128;
const CHUNK: usize = 64;
/// The longest sums: a block keeps as much of its columns.
const MOST_SUMS: usize = 512;
/// With fewer rows, each block would only read its columns once more than the library does.
const FEWEST_ROWS: usize = 1024;
const THREADS: u32 = 512;
/// Bytes of a block: its columns, eight tiles of the left operand, the twelve warps' parts of an
/// output, the bias, and the barriers.
const SHARED: usize = 2 * MOST_SUMS * BLOCK_COLUMNS
    + 8 * 2 * TILE_ROWS * CHUNK
    + 12 * 2 * 16 * CHUNK
    + 4 * BLOCK_COLUMNS
    + 8 * (2 * 8 + 3);

/// `F2_FUSED=0` turns these kernels off, to compare them with the library.
static IS_ON: LazyLock<bool> = LazyLock::new(|| env::var_os("F2_FUSED").is_none_or(|it| it != "0"));

impl<P: Precision> Cuda<P> {
    /// Whether products of these sizes (rows, columns, length of sums) have such kernels.
    fn is_fused(&self, [rows, columns, inner]: [usize; 3]) -> bool {
        let are_whole = rows.is_multiple_of(TILE_ROWS)
            && columns.is_multiple_of(BLOCK_COLUMNS)
            && inner.is_multiple_of(CHUNK);
        let fit = rows >= FEWEST_ROWS
            && (1..=MOST_SUMS).contains(&inner)
            && u32::try_from(rows * columns).is_ok();
        P::NAME == "bf16" && self.kernels.hopper && *IS_ON && are_whole && fit
    }

    /// Blocks that share 128 columns: as many as fit on the GPU at once, and no more than tiles.
    fn row_blocks(&self, rows: usize, columns: usize) -> usize {
        let share = self.kernels.multiprocessors / (columns / BLOCK_COLUMNS);
        share.clamp(1, rows / TILE_ROWS)
    }

    /// Multiplies `left: [rows, inner]` by `right`, whose boxes have `box_rows` rows. False if the
    /// driver does not accept the matrices.
    fn launch_fused(
        &self,
        kernel: Kernel<Product>,
        [rows, columns, inner]: [usize; 3],
        left: u64,
        (right, right_sizes, box_rows): (u64, [usize; 2], usize),
        [first, second, third]: [u64; 3],
    ) -> bool {
        let left = TensorMap::new(left, [rows, inner], TILE_ROWS);
        let right = TensorMap::new(right, right_sizes, box_rows);
        let (Ok(left), Ok(right)) = (left, right) else { return false };
        let grid = Grid::blocks(columns / BLOCK_COLUMNS, THREADS)
            .by(self.row_blocks(rows, columns))
            .sharing(SHARED);
        let arguments = (rows, columns, inner, left, right, first, second, third);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(kernel, grid, arguments) };
        true
    }

    /// `before = x · weightᵀ + bias`, `y = GELU(before)`. False if there is no kernel for these sizes.
    pub(super) fn fused_gelu(
        &self,
        sizes: [usize; 3],
        [x, weight, bias]: [u64; 3],
        [before, y]: [u64; 2],
    ) -> bool {
        let [_, columns, inner] = sizes;
        let right = (weight, [columns, inner], BLOCK_COLUMNS);
        self.is_fused(sizes) && self.launch_fused(PRODUCT_GELU, sizes, x, right, [bias, before, y])
    }

    /// `d_before = (d_y · weight) ∘ GELU'(before)`, and leaves the sums of its columns. False if there
    /// is no kernel for these sizes.
    pub(super) fn fused_gelu_backward(
        &self,
        sizes: [usize; 3],
        [d_y, weight, before]: [u64; 3],
        d_before: u64,
    ) -> bool {
        let [rows, columns, inner] = sizes;
        if !self.is_fused(sizes) {
            return false;
        }
        let blocks = self.row_blocks(rows, columns);
        let Some(partial) = self.scratch(blocks * columns * size_of::<f32>()) else {
            return false;
        };
        let right = (weight, [inner, columns], CHUNK);
        let others = [before, d_before, partial];
        let is_done = self.launch_fused(PRODUCT_GELU_BACKWARD, sizes, d_y, right, others);
        if is_done {
            self.leave_sums(ColumnSums { of: d_before, rows, columns, blocks, partial });
        }
        is_done
    }
}
