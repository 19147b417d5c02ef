//! Packing of operands in tiles of bf16.
//!
//! Two consecutive steps of a sum share a word, with the even one in the lower half. A tile of the
//! left operand is `[row, pair]`, with the 16 words of a row contiguous; a tile of the right
//! operand is `[pair, column]`. Which of the two needs no transpose depends on the layout of the
//! matrix.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_maskz_loadu_ps, _mm512_permutexvar_epi16, _mm512_setzero_ps, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use std::ops::Range;

use super::super::Matrix;
use super::{STEP, TILE, TILE_LEN, packed_len};
use crate::cpu::threads::Shared;

/// Sixteen rows of sixteen words.
type Tile = [__m512i; TILE];

/// The layout of a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `[row, pair]`.
    Left,
    /// `[pair, column]`.
    Right,
}

/// Some rows of a left operand or columns of a right one, for some steps of the sum.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// `[len, depth]`; for a right operand its transpose.
    pub(super) matrix: Matrix<'a>,
    pub(super) len: usize,
    pub(super) depth: usize,
    pub(super) form: Form,
}

impl<'a> Operand<'a> {
    /// A left operand, `[len, depth]`.
    pub(super) fn left(matrix: Matrix<'a>, len: usize, depth: usize) -> Self {
        Self { matrix, len, depth, form: Form::Left }
    }

    /// A right operand, `[depth, len]`.
    pub(super) fn right(matrix: Matrix<'a>, len: usize, depth: usize) -> Self {
        Self { matrix: matrix.transposed(), len, depth, form: Form::Right }
    }

    /// `len` rows or columns from `first` on.
    pub(super) fn part(self, first: usize, len: usize) -> Self {
        Self { matrix: self.matrix.from(first, 0), len, ..self }
    }

    /// Rounds and packs the operand: `[len / 16, depth / 32]` tiles, zero-padded.
    pub(super) fn pack(self, tiles: &mut [f32]) {
        // SAFETY: the tiles are borrowed exclusively.
        unsafe { self.pack_steps(0..self.depth, &Shared::new(tiles)) }
    }

    /// Rounds and packs some steps, which begin at a tile boundary, to their place among all
    /// `tiles`.
    ///
    /// # Safety
    /// No other thread may touch the tiles of these steps meanwhile.
    pub(super) unsafe fn pack_steps(self, steps: Range<usize>, tiles: &Shared<'_>) {
        assert!(self.matrix.fits(self.len, self.depth), "the operand is too small");
        assert!(tiles.len() >= packed_len(self.len, self.depth), "the tiles do not fit");
        assert!(self.matrix.row_stride == 1 || self.matrix.column_stride == 1);
        assert!(steps.start.is_multiple_of(STEP) && steps.end <= self.depth);
        // SAFETY: bf16 is used only if its instructions are available; the rest is asserted above
        // or guaranteed by the caller.
        unsafe { self.pack_tiles(steps, tiles.start()) }
    }

    /// Packs the tiles in the order of the matrix in memory.
    ///
    /// # Safety
    /// The matrix and the tiles must hold the operand.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn pack_tiles(self, steps: Range<usize>, tiles: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.matrix.column_stride == 1 {
                for first in (0..self.len).step_by(TILE) {
                    for step in steps.clone().step_by(STEP) {
                        self.pack_tile::<false>(first, step, tiles);
                    }
                }
            } else {
                for step in steps.step_by(STEP) {
                    for first in (0..self.len).step_by(TILE) {
                        self.pack_tile::<true>(first, step, tiles);
                    }
                }
            }
        }
    }

    /// Packs one tile; `PAIRS` if the columns of the matrix are contiguous.
    ///
    /// # Safety
    /// The matrix and the tiles must hold the operand.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn pack_tile<const PAIRS: bool>(self, first: usize, step: usize, tiles: *mut f32) {
        let len = TILE.min(self.len - first);
        let depth = STEP.min(self.depth - step);
        let matrix = self.matrix.from(first, step);
        let tile = match (PAIRS, len == TILE && depth == STEP) {
            (true, true) => load_pairs(matrix, TILE, STEP),
            (true, false) => load_pairs(matrix, len, depth),
            (false, true) => load_rows(matrix, TILE, STEP),
            (false, false) => load_rows(matrix, len, depth),
        };
        let straight = PAIRS == (self.form == Form::Right);
        let tile = if straight { tile } else { transpose(&tile) };
        let place = (first / TILE * self.depth.div_ceil(STEP) + step / STEP) * TILE_LEN;
        for (row, words) in tile.into_iter().enumerate() {
            // SAFETY: a row of sixteen words in a tile of the operand.
            unsafe { _mm512_storeu_si512(tiles.add(place + row * TILE).cast(), words) };
        }
    }
}

/// `count` floats from this element on, at most sixteen, zero-padded.
#[inline(always)]
fn load(matrix: Matrix<'_>, row: usize, column: usize, count: usize) -> __m512 {
    let place = row * matrix.row_stride + column * matrix.column_stride;
    // SAFETY: bf16 is available. `pack_steps` checked that the operand holds these elements.
    unsafe {
        if count == TILE {
            return _mm512_loadu_ps(matrix.elements.as_ptr().add(place));
        }
        if count == 0 {
            return _mm512_setzero_ps();
        }
        let mask = ((1_u32 << count) - 1) as u16;
        _mm512_maskz_loadu_ps(mask, matrix.elements.as_ptr().add(place))
    }
}

/// A tile `[row, pair]` of a matrix with contiguous rows.
#[inline(always)]
fn load_rows(matrix: Matrix<'_>, len: usize, depth: usize) -> Tile {
    // SAFETY: bf16 is available.
    let mut tile = unsafe { [_mm512_setzero_si512(); TILE] };
    for row in 0..len {
        let low = load(matrix, row, 0, depth.min(TILE));
        let high = load(matrix, row, TILE, depth.saturating_sub(TILE));
        tile[row] = round(high, low);
    }
    tile
}

/// A tile `[pair, row]` of a matrix with contiguous columns.
#[inline(always)]
fn load_pairs(matrix: Matrix<'_>, len: usize, depth: usize) -> Tile {
    /// Interleaves the lower and the upper sixteen.
    static INTERLEAVED: [u16; 32] = {
        let mut order = [0; 32];
        let mut place = 0;
        while place < 32 {
            order[place] = (place / 2 + place % 2 * 16) as u16;
            place += 1;
        }
        order
    };
    // SAFETY: bf16 is available; the constant has the size of a register.
    unsafe {
        let interleaved = _mm512_loadu_si512((&raw const INTERLEAVED).cast());
        let mut tile = [_mm512_setzero_si512(); TILE];
        for pair in 0..depth.div_ceil(2) {
            let even = load(matrix, 0, 2 * pair, len);
            let odd = load(matrix, 0, 2 * pair + 1, if 2 * pair + 1 < depth { len } else { 0 });
            tile[pair] = _mm512_permutexvar_epi16(interleaved, round(odd, even));
        }
        tile
    }
}

/// Rounds 32 floats to bf16, to nearest with ties to even.
#[inline(always)]
fn round(high: __m512, low: __m512) -> __m512i {
    // SAFETY: bf16 is available; both are 512 bits of any value.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// Transposes sixteen rows of sixteen words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn transpose(tile: &Tile) -> Tile {
    let mut words = *tile;
    // Interleave within each quarter of a register: words, then pairs of words.
    for i in 0..8 {
        let (a, b) = (tile[2 * i], tile[2 * i + 1]);
        words[2 * i] = _mm512_unpacklo_epi32(a, b);
        words[2 * i + 1] = _mm512_unpackhi_epi32(a, b);
    }
    let mut quads = words;
    for i in 0..4 {
        let [a, b, c, d] = [words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]];
        quads[4 * i] = _mm512_unpacklo_epi64(a, c);
        quads[4 * i + 1] = _mm512_unpackhi_epi64(a, c);
        quads[4 * i + 2] = _mm512_unpacklo_epi64(b, d);
        quads[4 * i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    // Quarter `q` of `quads[4 g + j]` now holds column `4 q + j` of rows `4 g..4 g + 4`.
    let mut columns = quads;
    for j in 0..4 {
        let [a, b, c, d] = [quads[j], quads[4 + j], quads[8 + j], quads[12 + j]];
        let (ab_even, ab_odd) =
            (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xDD>(a, b));
        let (cd_even, cd_odd) =
            (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xDD>(c, d));
        columns[j] = _mm512_shuffle_i32x4::<0x88>(ab_even, cd_even);
        columns[8 + j] = _mm512_shuffle_i32x4::<0xDD>(ab_even, cd_even);
        columns[4 + j] = _mm512_shuffle_i32x4::<0x88>(ab_odd, cd_odd);
        columns[12 + j] = _mm512_shuffle_i32x4::<0xDD>(ab_odd, cd_odd);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::Simd;

    /// Small integers, which bf16 represents exactly, for both forms and both matrix layouts.
    #[test]
    fn every_element_has_its_place() {
        if !Simd::has_bf16() {
            eprintln!("skipped: this processor has no bf16 instructions");
            return;
        }
        let [len, depth] = [21, 37];
        let value = |index: usize, step: usize| (index * 11 + step * 3) as f32 % 251.0;
        let rows: Vec<f32> = (0..len * depth).map(|i| value(i / depth, i % depth)).collect();
        let columns: Vec<f32> = (0..len * depth).map(|i| value(i % len, i / len)).collect();
        let matrices = [Matrix::rows(&rows, depth), Matrix::rows(&columns, len).transposed()];
        for (form, matrix) in [Form::Left, Form::Right]
            .into_iter()
            .flat_map(|form| matrices.map(|matrix| (form, matrix)))
        {
            let mut tiles = vec![f32::NAN; packed_len(len, depth)];
            Operand { matrix, len, depth, form }.pack(&mut tiles);
            let steps = depth.div_ceil(STEP);
            for index in 0..len.next_multiple_of(TILE) {
                for step in 0..depth.next_multiple_of(STEP) {
                    let tile = (index / TILE * steps + step / STEP) * TILE_LEN;
                    let (index_in, pair) = (index % TILE, step % STEP / 2);
                    let word = match form {
                        Form::Left => index_in * TILE + pair,
                        Form::Right => pair * TILE + index_in,
                    };
                    let half = (tiles[tile + word].to_bits() >> (16 * (step % 2))) << 16;
                    let inside = index < len && step < depth;
                    let expected = if inside { value(index, step) } else { 0.0 };
                    assert_eq!(f32::from_bits(half), expected, "{index} {step}");
                }
            }
        }
    }
}
