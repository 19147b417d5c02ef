//! The microkernel for bf16: two tiles of rows by two of columns.

use std::arch::asm;
use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_load_ps, _mm512_loadu_si512, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_epi32, _mm512_setzero_ps, _mm512_store_ps,
};

use super::{STEP, TILE, TILE_LEN, Write};
use crate::cpu::simd::Simd;

/// The number of rows and columns in a block.
const SIDE: usize = 2 * TILE;

/// The output, and how products are written to it.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) start: *mut f32,
    pub(super) stride: usize,
    pub(super) write: Write<'a>,
}

/// The size of a cache line in bytes: AMX loads that cross one are four times slower.
const LINE: usize = 64;

/// A buffer for the sums of a block that is not computed in place, `[32, 32]`.
#[repr(C, align(64))]
struct Sums([f32; SIDE * SIDE]);

/// The operands of a block: the first of `steps` consecutive tiles for each half.
#[derive(Clone, Copy)]
struct Tiles {
    left: [*const f32; 2],
    right: [*const f32; 2],
    steps: usize,
}

/// The initial values of a block's sums: zero, or `[32, 32]` with this row stride in bytes.
#[derive(Clone, Copy)]
enum Initial {
    Zero,
    At(*const f32, usize),
}

/// The product of packed operands `[m, k]` and `[k, n]`. The right operand has `right_steps` tiles
/// for each 16 columns, of which the first are used.
///
/// An element starts from the value given by `write`, to which the steps are added in order.
///
/// # Safety
/// The tiles must hold the operands; the output must be valid for its rows and columns, and nothing
/// else may access it. bf16 must be available.
pub(super) unsafe fn multiply(
    [m, n, k]: [usize; 3],
    left: &[f32],
    right: &[f32],
    right_steps: usize,
    out: Output<'_>,
) {
    let steps = k.div_ceil(STEP);
    let (left_stride, right_stride) = (steps * TILE_LEN, right_steps * TILE_LEN);
    assert!(left.len() >= m.div_ceil(TILE) * left_stride && steps <= right_steps);
    assert!(right.len() >= (n.div_ceil(TILE) - 1) * right_stride + left_stride);
    let amx = Simd::used() == Simd::Amx;
    let two = |operand: &[f32], stride: usize, first: usize, len: usize| {
        // A last tile without a neighbour is used twice.
        let second = if first + TILE < len { first + TILE } else { first };
        [first, second].map(|index| operand[index / TILE * stride..].as_ptr())
    };
    // SAFETY: the tiles were checked; the caller guarantees the output.
    unsafe {
        if amx {
            configure_tiles();
        }
        for column in (0..n).step_by(SIDE) {
            for row in (0..m).step_by(SIDE) {
                let tiles = Tiles {
                    left: two(left, left_stride, row, m),
                    right: two(right, right_stride, column, n),
                    steps,
                };
                let dims = [SIDE.min(m - row), SIDE.min(n - column)];
                out.from(row, column).add_product(amx, dims, tiles);
            }
        }
        if amx {
            release_tiles();
        }
    }
}

impl Output<'_> {
    /// The output from this element on.
    ///
    /// # Safety
    /// The element must lie within the output.
    unsafe fn from(self, row: usize, column: usize) -> Self {
        let write = match self.write {
            Write::Bias(bias) => Write::Bias(&bias[column..]),
            other => other,
        };
        // SAFETY: guaranteed by the caller.
        Self { start: unsafe { self.start.add(row * self.stride + column) }, write, ..self }
    }

    /// Computes a block: in place if it is whole and its rows are aligned.
    ///
    /// # Safety
    /// The tiles must be valid, and the output must be valid for these rows and columns.
    unsafe fn add_product(self, amx: bool, dims: [usize; 2], tiles: Tiles) {
        let row_bytes = size_of::<f32>() * self.stride;
        let aligned = |start: *const f32| (start as usize).is_multiple_of(LINE);
        let bias_aligned = match self.write {
            Write::Bias(bias) => bias.len() >= SIDE && aligned(bias.as_ptr()),
            _ => true,
        };
        let in_place = dims == [SIDE, SIDE]
            && aligned(self.start)
            && row_bytes.is_multiple_of(LINE)
            && bias_aligned;
        // SAFETY: guaranteed by the caller; a block that is not whole is computed in `sums`.
        unsafe {
            if in_place {
                let initial = match self.write {
                    Write::Overwrite => Initial::Zero,
                    Write::Add => Initial::At(self.start, row_bytes),
                    Write::Bias(bias) => Initial::At(bias.as_ptr(), 0),
                };
                block(amx, tiles, initial, self.start, row_bytes);
            } else {
                let mut sums = Sums([0.0; SIDE * SIDE]);
                self.read_block(dims, &mut sums);
                let start = sums.0.as_mut_ptr();
                let row_bytes = SIDE * size_of::<f32>();
                block(amx, tiles, Initial::At(start, row_bytes), start, row_bytes);
                self.write_block(dims, &sums);
            }
        }
    }

    /// Reads the initial values of a block.
    ///
    /// # Safety
    /// The output must be valid for these rows and columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn read_block(self, [rows, columns]: [usize; 2], sums: &mut Sums) {
        let (from, stride) = match self.write {
            Write::Overwrite => return,
            Write::Add => (self.start.cast_const(), self.stride),
            Write::Bias(bias) => (bias[..columns].as_ptr(), 0),
        };
        for (row, column) in halves(rows, columns) {
            let mask = mask(columns - column);
            // SAFETY: within the block; the mask selects lanes within the output or the bias.
            unsafe {
                let values = _mm512_maskz_loadu_ps(mask, from.add(row * stride + column));
                _mm512_store_ps(sums.0.as_mut_ptr().add(row * SIDE + column), values);
            }
        }
    }

    /// Writes a block's rows and columns.
    ///
    /// # Safety
    /// The output must be valid for these rows and columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn write_block(self, [rows, columns]: [usize; 2], sums: &Sums) {
        for (row, column) in halves(rows, columns) {
            // SAFETY: within the block; the mask selects lanes within the output.
            unsafe {
                let values = _mm512_load_ps(sums.0.as_ptr().add(row * SIDE + column));
                let to = self.start.add(row * self.stride + column);
                _mm512_mask_storeu_ps(to, mask(columns - column), values);
            }
        }
    }
}

/// The row and first column of each register of a block.
fn halves(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).step_by(TILE).map(move |column| (row, column)))
}

/// The first `count` of sixteen lanes.
fn mask(count: usize) -> u16 {
    ((1_u32 << count.min(TILE)) - 1) as u16
}

/// Computes a block of 32 × 32 sums.
///
/// # Safety
/// The tiles and initial values must be valid, and `to` must be valid for 32 rows of 32 floats,
/// `row_bytes` apart. All rows must be aligned to 64 bytes.
unsafe fn block(amx: bool, tiles: Tiles, initial: Initial, to: *mut f32, row_bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if amx {
            amx_block(tiles, initial, to, row_bytes);
        } else {
            avx512_block(tiles, initial, to, row_bytes);
        }
    }
}

/// The AMX configuration: eight tile registers with 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIGURATION: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// # Safety
/// AMX must be available and permitted by the system.
unsafe fn configure_tiles() {
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly));
    }
}

/// # Safety
/// As for [`configure_tiles`].
unsafe fn release_tiles() {
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, nomem),
        );
    }
}

/// [`block`] with AMX: four tiles of sums, updated at every step.
///
/// # Safety
/// As for [`block`], and the tile registers must be configured.
unsafe fn amx_block(tiles: Tiles, initial: Initial, to: *mut f32, row_bytes: usize) {
    // SAFETY: guaranteed by the caller; there is at least one step.
    unsafe {
        match initial {
            Initial::Zero => asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack, nomem),
            ),
            Initial::At(from, bytes) => asm!(
                "tileloadd tmm0, [{from} + {bytes}*1]",
                "tileloadd tmm1, [{from} + {bytes}*1 + 64]",
                "tileloadd tmm2, [{below} + {bytes}*1]",
                "tileloadd tmm3, [{below} + {bytes}*1 + 64]",
                from = in(reg) from,
                below = in(reg) from.byte_add(TILE * bytes),
                bytes = in(reg) bytes,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack, readonly),
            ),
        }
        asm!(
            "2:",
            "tileloadd tmm4, [{left} + {row}*1]",
            "tileloadd tmm6, [{right} + {row}*1]",
            "tileloadd tmm7, [{next_right} + {row}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{next_left} + {row}*1]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {left}, 1024",
            "add {next_left}, 1024",
            "add {right}, 1024",
            "add {next_right}, 1024",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{to} + {bytes}*1], tmm0",
            "tilestored [{to} + {bytes}*1 + 64], tmm1",
            "tilestored [{below} + {bytes}*1], tmm2",
            "tilestored [{below} + {bytes}*1 + 64], tmm3",
            left = inout(reg) tiles.left[0] => _,
            next_left = inout(reg) tiles.left[1] => _,
            right = inout(reg) tiles.right[0] => _,
            next_right = inout(reg) tiles.right[1] => _,
            steps = inout(reg) tiles.steps => _,
            row = in(reg) LINE,
            to = in(reg) to,
            below = in(reg) to.byte_add(TILE * row_bytes),
            bytes = in(reg) row_bytes,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// [`block`] with dot products of pairs: sixteen rows of sums at a time.
///
/// # Safety
/// As for [`block`], and the instructions must be available.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn avx512_block(tiles: Tiles, initial: Initial, to: *mut f32, row_bytes: usize) {
    for (i, left) in tiles.left.into_iter().enumerate() {
        for (j, right) in tiles.right.into_iter().enumerate() {
            let mut rows = [_mm512_setzero_ps(); TILE];
            if let Initial::At(from, bytes) = initial {
                for (row, sum) in rows.iter_mut().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let from = from.byte_add((i * TILE + row) * bytes).add(j * TILE);
                        *sum = _mm512_load_ps(from);
                    }
                }
            }
            for step in 0..tiles.steps {
                // SAFETY: guaranteed by the caller.
                let (left, right) =
                    unsafe { (left.add(step * TILE_LEN), right.add(step * TILE_LEN)) };
                for pair in 0..TILE {
                    // SAFETY: within these tiles.
                    unsafe {
                        let columns = pairs(_mm512_loadu_si512(right.add(pair * TILE).cast()));
                        for row in 0..TILE {
                            let words = _mm512_set1_epi32(*left.add(row * TILE + pair).cast());
                            rows[row] = _mm512_dpbf16_ps(rows[row], pairs(words), columns);
                        }
                    }
                }
            }
            for (row, sum) in rows.into_iter().enumerate() {
                // SAFETY: guaranteed by the caller, including the alignment.
                unsafe {
                    let to = to.byte_add((i * TILE + row) * row_bytes).add(j * TILE);
                    _mm512_store_ps(to, sum);
                }
            }
        }
    }
}

/// Reinterprets words as pairs of bf16.
#[inline(always)]
fn pairs(words: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits of any value.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(words) }
}
