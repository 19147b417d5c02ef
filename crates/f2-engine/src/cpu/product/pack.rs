//! Packing of operand blocks in the order in which the tiles read them.

use super::Matrix;
use super::kernel::COLUMNS;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::Simd;

/// Packs `[depth, columns]` of the right operand into panels of 16 columns, zero-padded.
pub(super) fn right(matrix: Matrix<'_>, depth: usize, columns: usize, packed: &mut [f32]) {
    for (index, panel) in packed.chunks_exact_mut(COLUMNS * depth).enumerate() {
        let first = index * COLUMNS;
        if first >= columns {
            break;
        }
        let count = COLUMNS.min(columns - first);
        let start = first * matrix.column_stride;
        let matrix = Matrix { elements: &matrix.elements[start..], ..matrix };
        if count < COLUMNS {
            partial_panel(matrix, count, panel);
        } else if matrix.column_stride == 1 {
            contiguous_panel(matrix, panel);
        } else {
            transposed_panel(matrix, depth, panel);
        }
    }
}

fn partial_panel(matrix: Matrix<'_>, count: usize, panel: &mut [f32]) {
    for (step, packed) in panel.chunks_exact_mut(COLUMNS).enumerate() {
        for (column, packed) in packed.iter_mut().enumerate() {
            let place = step * matrix.row_stride + column * matrix.column_stride;
            *packed = if column < count { matrix.elements[place] } else { 0.0 };
        }
    }
}

/// Packs a panel from contiguous rows.
fn contiguous_panel(matrix: Matrix<'_>, panel: &mut [f32]) {
    for (step, packed) in panel.as_chunks_mut::<COLUMNS>().0.iter_mut().enumerate() {
        let start = step * matrix.row_stride;
        packed.copy_from_slice(&matrix.elements[start..start + COLUMNS]);
    }
}

/// Packs a panel by transposition, for contiguous columns.
fn transposed_panel(matrix: Matrix<'_>, depth: usize, panel: &mut [f32]) {
    for step in transpose_blocks(matrix, depth, panel)..depth {
        for column in 0..COLUMNS {
            let place = step * matrix.row_stride + column * matrix.column_stride;
            panel[step * COLUMNS + column] = matrix.elements[place];
        }
    }
}

/// Transposes blocks of eight steps if AVX2 is available; returns the number of steps packed.
#[cfg(target_arch = "x86_64")]
fn transpose_blocks(matrix: Matrix<'_>, depth: usize, panel: &mut [f32]) -> usize {
    if Simd::used() >= Simd::Avx2 && matrix.row_stride == 1 {
        let done = depth - depth % 8;
        let last = (COLUMNS - 1) * matrix.column_stride + done;
        assert!(last <= matrix.elements.len() && done * COLUMNS <= panel.len());
        for step in (0..done).step_by(8) {
            for half in [0, 8] {
                // SAFETY: AVX2 is available; eight rows of eight within both slices, as asserted.
                unsafe {
                    let from = matrix.elements.as_ptr().add(half * matrix.column_stride + step);
                    let to = panel.as_mut_ptr().add(step * COLUMNS + half);
                    transpose_8x8(from, matrix.column_stride, to, COLUMNS);
                }
            }
        }
        return done;
    }
    0
}

/// Other targets have no block transpose.
#[cfg(not(target_arch = "x86_64"))]
fn transpose_blocks(_: Matrix<'_>, _: usize, _: &mut [f32]) -> usize {
    0
}

/// Transposes an 8 × 8 block.
///
/// # Safety
/// `from` must be valid for eight rows of eight floats `from_stride` apart, `to` for as many
/// `to_stride` apart, and AVX2 must be available.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::{
        _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    // SAFETY: the caller guarantees eight rows on both sides.
    let row = |index: usize| unsafe { _mm256_loadu_ps(from.add(index * from_stride)) };
    let pairs = |a: usize| {
        let (a, b) = (row(a), row(a + 1));
        (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b))
    };
    let quads = |first: usize| {
        let ((low, high), (next_low, next_high)) = (pairs(first), pairs(first + 2));
        [
            _mm256_shuffle_ps::<0x44>(low, next_low),
            _mm256_shuffle_ps::<0xEE>(low, next_low),
            _mm256_shuffle_ps::<0x44>(high, next_high),
            _mm256_shuffle_ps::<0xEE>(high, next_high),
        ]
    };
    let (upper, lower) = (quads(0), quads(4));
    for index in 0..4 {
        // SAFETY: as above.
        unsafe {
            let near = _mm256_permute2f128_ps::<0x20>(upper[index], lower[index]);
            let far = _mm256_permute2f128_ps::<0x31>(upper[index], lower[index]);
            _mm256_storeu_ps(to.add(index * to_stride), near);
            _mm256_storeu_ps(to.add((index + 4) * to_stride), far);
        }
    }
}

/// Transposes `from: [columns, rows]` to `to: [rows, columns]`, with the given row strides.
///
/// # Safety
/// Both matrices must be valid, and nothing else may access `to`.
pub(super) unsafe fn transpose(
    [rows, columns]: [usize; 2],
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    for row in (0..rows).step_by(8) {
        for column in (0..columns).step_by(8) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let from = from.add(column * from_stride + row);
                let to = to.add(row * to_stride + column);
                #[cfg(target_arch = "x86_64")]
                if row + 8 <= rows && column + 8 <= columns && Simd::used() >= Simd::Avx2 {
                    transpose_8x8(from, from_stride, to, to_stride);
                    continue;
                }
                for i in 0..8.min(rows - row) {
                    for j in 0..8.min(columns - column) {
                        *to.add(i * to_stride + j) = *from.add(j * from_stride + i);
                    }
                }
            }
        }
    }
}

/// Packs `[rows, depth]` of the left operand into panels of `tile` rows,
/// `[rows / tile, depth, tile]`. For operands with a row stride of 1.
pub(super) fn left(matrix: Matrix<'_>, rows: usize, depth: usize, tile: usize, packed: &mut [f32]) {
    match tile {
        12 => left_panels::<12>(matrix, rows, depth, packed),
        6 => left_panels::<6>(matrix, rows, depth, packed),
        _ => left_panels::<2>(matrix, rows, depth, packed),
    }
}

fn left_panels<const TILE: usize>(
    matrix: Matrix<'_>,
    rows: usize,
    depth: usize,
    packed: &mut [f32],
) {
    debug_assert_eq!(matrix.row_stride, 1);
    let panel = TILE * depth;
    // Column by column: each is contiguous and read once.
    for step in 0..depth {
        let column = &matrix.elements[step * matrix.column_stride..][..rows];
        let (tiles, rest) = column.as_chunks::<TILE>();
        for (index, tile) in tiles.iter().enumerate() {
            let start = index * panel + step * TILE;
            packed[start..start + TILE].copy_from_slice(tile);
        }
        let start = tiles.len() * panel + step * TILE;
        if !rest.is_empty() {
            packed[start..start + rest.len()].copy_from_slice(rest);
        }
    }
}
