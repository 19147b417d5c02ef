//! The innermost part: two tiles of rows by two of columns.

use std::arch::asm;
use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_load_ps, _mm512_loadu_si512,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_set1_epi32, _mm512_setzero_ps,
    _mm512_store_ps,
};

use super::{STEP, TILE, TILE_LEN, Write};
use crate::cpu::simd::Simd;

/// Rows and columns of a block.
const SIDE: usize = 2 * TILE;

/// Where products go.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) start: *mut f32,
    pub(super) stride: usize,
    pub(super) write: Write<'a>,
}

/// A block's sums; AMX is four times slower across cache lines.
#[repr(C, align(64))]
struct Sums([f32; SIDE * SIDE]);

/// Where a block's four tiles begin, and how many follow each.
#[derive(Clone, Copy)]
struct Tiles {
    left: [*const f32; 2],
    right: [*const f32; 2],
    steps: usize,
}

/// The product of tiles: rows `[m, k]` and columns `[k, n]`, whose tiles lie `right_steps` apart.
///
/// # Safety
/// The tiles must hold the operands; the output must be valid for its rows and columns, and nothing
/// else may touch it. bf16 must have been found.
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
    let mut sums = Sums([0.0; SIDE * SIDE]);
    let two = |operand: &[f32], stride: usize, first: usize, len: usize| {
        // A last tile without a neighbour is its own.
        let second = if first + TILE < len { first + TILE } else { first };
        [first, second].map(|index| operand[index / TILE * stride..].as_ptr())
    };
    // SAFETY: the tiles were checked; the output is as the caller vouches.
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
                if amx {
                    amx_block(tiles, &mut sums);
                } else {
                    avx512_block(tiles, &mut sums);
                }
                let dims = [SIDE.min(m - row), SIDE.min(n - column)];
                write_block(dims, &sums, out, row, column);
            }
        }
        if amx {
            release_tiles();
        }
    }
}

/// Eight tile registers of 16 rows of 64 bytes.
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
/// AMX must have been found and granted by the system.
unsafe fn configure_tiles() {
    // SAFETY: as the caller vouches.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly));
    }
}

/// # Safety
/// As for [`configure_tiles`].
unsafe fn release_tiles() {
    // SAFETY: as the caller vouches.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, nomem),
        );
    }
}

/// Four tiles of sums, each multiplied at every step.
///
/// # Safety
/// The tiles must be valid and the registers configured.
unsafe fn amx_block(tiles: Tiles, sums: &mut Sums) {
    // SAFETY: as the caller vouches; there is at least one step.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
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
            "tilestored [{sums} + {wide}*1], tmm0",
            "tilestored [{sums} + {wide}*1 + 64], tmm1",
            "tilestored [{sums} + {wide}*1 + 2048], tmm2",
            "tilestored [{sums} + {wide}*1 + 2112], tmm3",
            left = inout(reg) tiles.left[0] => _,
            next_left = inout(reg) tiles.left[1] => _,
            right = inout(reg) tiles.right[0] => _,
            next_right = inout(reg) tiles.right[1] => _,
            steps = inout(reg) tiles.steps => _,
            row = in(reg) 64_usize,
            wide = in(reg) 4 * SIDE,
            sums = in(reg) sums.0.as_mut_ptr(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// The same by dot products of pairs: sixteen rows of sums at a time.
///
/// # Safety
/// The tiles must be valid and the instructions found.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn avx512_block(tiles: Tiles, sums: &mut Sums) {
    for (i, left) in tiles.left.into_iter().enumerate() {
        for (j, right) in tiles.right.into_iter().enumerate() {
            let mut rows = [_mm512_setzero_ps(); TILE];
            for step in 0..tiles.steps {
                // SAFETY: as the caller vouches.
                let (left, right) =
                    unsafe { (left.add(step * TILE_LEN), right.add(step * TILE_LEN)) };
                for pair in 0..TILE {
                    // SAFETY: words of these tiles.
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
                let place = (i * TILE + row) * SIDE + j * TILE;
                // SAFETY: within the block, sixteen columns aligned to a cache line.
                unsafe { _mm512_store_ps(sums.0.as_mut_ptr().add(place), sum) };
            }
        }
    }
}

/// Words as pairs of bf16.
#[inline(always)]
fn pairs(words: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits of any value.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(words) }
}

/// Writes or adds a block's rows and columns.
///
/// # Safety
/// The output must be valid for them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn write_block(
    [rows, columns]: [usize; 2],
    sums: &Sums,
    out: Output<'_>,
    first_row: usize,
    first_column: usize,
) {
    for column in (0..columns).step_by(TILE) {
        let mask = ((1_u32 << TILE.min(columns - column)) - 1) as u16;
        let bias = match out.write {
            // SAFETY: a bias is as long as its columns.
            Write::Bias(bias) => unsafe {
                _mm512_maskz_loadu_ps(mask, bias[first_column + column..].as_ptr())
            },
            _ => _mm512_setzero_ps(),
        };
        for row in 0..rows {
            // SAFETY: within the block and, where the mask is set, within the output.
            unsafe {
                let sum: __m512 = _mm512_load_ps(sums.0.as_ptr().add(row * SIDE + column));
                let to = out.start.add((first_row + row) * out.stride + first_column + column);
                let value = match out.write {
                    Write::Overwrite => sum,
                    Write::Bias(_) => _mm512_add_ps(bias, sum),
                    Write::Add => _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum),
                };
                _mm512_mask_storeu_ps(to, mask, value);
            }
        }
    }
}
