//! Dropout masks from Philox, recomputed wherever they are applied and never stored.

use super::Cpu;
use super::simd::{Arithmetic, vectorised};
use crate::random::{MULTIPLIERS, ROUNDS, next_key};
use crate::{Dropout, Dropouts, Error, Moment};

/// Counters processed together: enough for the compiler to vectorise the loops over them.
const WIDE: usize = 32;
/// Mask of the lower half of 64 bits.
const LOWER: u64 = 0xffff_ffff;

impl Dropouts for Cpu {
    type Clock = Moment;

    fn clock(&self) -> Result<Moment, Error> {
        Ok(Moment::default())
    }

    fn set_clock(&self, moment: Moment, to: &mut Moment) {
        *to = moment;
    }
}

/// The mask of one site at one moment.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    moment: Moment,
    site: u32,
    threshold: u16,
    scale: f32,
}

impl Mask {
    pub(super) fn of(dropout: Dropout<'_, Cpu>) -> Self {
        let threshold = (f64::from(dropout.probability) * 65_536.0).round();
        Self {
            moment: *dropout.clock,
            site: dropout.site,
            threshold: threshold as u16,
            scale: (1.0 / (1.0 - threshold / 65_536.0)) as f32,
        }
    }

    pub(super) fn keeps_all(self) -> bool {
        self.threshold == 0
    }

    /// `sum = x + dropout(branch)` for one position.
    pub(super) fn add_kept(self, row: usize, x: &[f32], branch: &[f32], sum: &mut [f32]) {
        if self.keeps_all() {
            for ((sum, x), branch) in sum.iter_mut().zip(x).zip(branch) {
                *sum = x + branch;
            }
        } else {
            add_kept_row(self, row, x, branch, sum);
        }
    }

    /// `kept = dropout(x)` for one position; `x` may also be a gradient.
    pub(super) fn keep(self, row: usize, x: &[f32], kept: &mut [f32]) {
        if self.keeps_all() {
            kept.copy_from_slice(x);
        } else {
            keep_row(self, row, x, kept);
        }
    }

    /// `x = dropout(x)` for one position.
    pub(super) fn keep_in_place(self, row: usize, x: &mut [f32]) {
        if !self.keeps_all() {
            keep_row_in_place(self, row, x);
        }
    }

    /// `sum += dropout(x)` for one position.
    pub(super) fn add_kept_to(self, row: usize, x: &[f32], sum: &mut [f32]) {
        if self.keeps_all() {
            for (sum, x) in sum.iter_mut().zip(x) {
                *sum += x;
            }
        } else {
            add_kept_row_to(self, row, x, sum);
        }
    }

    /// Calls `each(column, factor)` for all columns of a position; the factor is 0 or the scale.
    #[inline(always)]
    fn for_each(self, row: usize, width: usize, mut each: impl FnMut(usize, f32)) {
        let position = self.moment.first_position + row as u64;
        let first = position * width.div_ceil(8) as u64;
        let key = [self.moment.seed as u32, (self.moment.seed >> 32) as u32];
        for start in (0..width).step_by(8 * WIDE) {
            let block = first + (start / 8) as u64;
            let bits = philox_wide(block, self.site, self.moment.step, key);
            let factor =
                |column: usize| if bits[column] >= self.threshold { self.scale } else { 0.0 };
            if start + 8 * WIDE <= width {
                for column in 0..8 * WIDE {
                    each(start + column, factor(column));
                }
            } else {
                for column in 0..width - start {
                    each(start + column, factor(column));
                }
            }
        }
    }
}

/// Philox of `WIDE` consecutive counters, as half-words.
///
/// Each word is stored in 64 bits, so that the products map to the 32 × 32 → 64-bit multiplications
/// of vector units.
#[inline(always)]
fn philox_wide(block: u64, site: u32, step: u32, mut key: [u32; 2]) -> [u16; 8 * WIDE] {
    let mut words = [[0; WIDE], [0; WIDE], [u64::from(site); WIDE], [u64::from(step); WIDE]];
    for lane in 0..WIDE {
        let counter = block + lane as u64;
        words[0][lane] = counter & LOWER;
        words[1][lane] = counter >> 32;
    }
    for _ in 0..ROUNDS {
        for lane in 0..WIDE {
            let first = words[0][lane] * u64::from(MULTIPLIERS[0]);
            let second = words[2][lane] * u64::from(MULTIPLIERS[1]);
            words[0][lane] = (second >> 32) ^ words[1][lane] ^ u64::from(key[0]);
            words[1][lane] = second & LOWER;
            words[2][lane] = (first >> 32) ^ words[3][lane] ^ u64::from(key[1]);
            words[3][lane] = first & LOWER;
        }
        key = next_key(key);
    }
    let mut halves = [0; 8 * WIDE];
    for lane in 0..WIDE {
        for word in 0..4 {
            halves[lane * 8 + word * 2] = words[word][lane] as u16;
            halves[lane * 8 + word * 2 + 1] = (words[word][lane] >> 16) as u16;
        }
    }
    halves
}

vectorised! {
    fn add_kept_row(mask: Mask, row: usize, x: &[f32], branch: &[f32], sum: &mut [f32])
    = add_kept_kernel
}

#[inline(always)]
fn add_kept_kernel<A: Arithmetic>(
    mask: Mask,
    row: usize,
    x: &[f32],
    branch: &[f32],
    sum: &mut [f32],
) {
    let width = sum.len();
    let (x, branch) = (&x[..width], &branch[..width]);
    mask.for_each(row, width, |i, factor| sum[i] = A::mul_add(branch[i], factor, x[i]));
}

vectorised! {
    fn add_kept_row_to(mask: Mask, row: usize, x: &[f32], sum: &mut [f32]) = add_kept_to_kernel
}

#[inline(always)]
fn add_kept_to_kernel<A: Arithmetic>(mask: Mask, row: usize, x: &[f32], sum: &mut [f32]) {
    let width = sum.len();
    let x = &x[..width];
    mask.for_each(row, width, |i, factor| sum[i] = A::mul_add(x[i], factor, sum[i]));
}

vectorised! {
    fn keep_row(mask: Mask, row: usize, x: &[f32], kept: &mut [f32]) = keep_kernel
}

#[inline(always)]
fn keep_kernel<A: Arithmetic>(mask: Mask, row: usize, x: &[f32], kept: &mut [f32]) {
    let width = kept.len();
    let x = &x[..width];
    mask.for_each(row, width, |i, factor| kept[i] = x[i] * factor);
}

vectorised! {
    fn keep_row_in_place(mask: Mask, row: usize, x: &mut [f32]) = keep_in_place_kernel
}

#[inline(always)]
fn keep_in_place_kernel<A: Arithmetic>(mask: Mask, row: usize, x: &mut [f32]) {
    mask.for_each(row, x.len(), |i, factor| x[i] *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::philox;

    fn mask(first_position: u64) -> Mask {
        let moment = Moment { seed: 0x0123_4567_89ab_cdef, step: 9, first_position };
        Mask::of(Dropout { probability: 0.3, site: 5, clock: &moment })
    }

    /// The definition in the documentation of [`Dropout`].
    #[test]
    fn masks_follow_their_definition() {
        for width in [1, 4, 30, 32, 37, 256] {
            let mut kept = vec![0.0; width];
            mask(11).keep(3, &vec![1.0; width], &mut kept);
            for (column, &kept) in kept.iter().enumerate() {
                let block = 14 * width.div_ceil(8) as u64 + column as u64 / 8;
                let counter = [block as u32, (block >> 32) as u32, 5, 9];
                let word = philox(counter, [0x89ab_cdef, 0x0123_4567])[column % 8 / 2];
                let half = (word >> (16 * (column % 2))) & 0xffff;
                let threshold = 19_661; // 0.3 · 2¹⁶ = 19,660.8
                assert_eq!(kept > 0.0, half >= threshold);
                let scale = 1.0 / (1.0 - threshold as f32 / 65_536.0);
                assert!(half < threshold || (kept - scale).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_batch_split_anywhere_draws_the_same() {
        let (mut whole, mut split) = ([0.0; 52], [0.0; 52]);
        mask(0).keep(20, &[1.0; 52], &mut whole);
        mask(16).keep(4, &[1.0; 52], &mut split);
        assert_eq!(whole, split);
    }

    #[test]
    fn keeps_the_share_it_should() {
        let mut kept = vec![0.0; 100_000];
        mask(0).keep(0, &vec![1.0; 100_000], &mut kept);
        let share = kept.iter().filter(|&&x| x > 0.0).count() as f64 / 1e5;
        assert!((share - 0.7).abs() < 0.005, "{share}");
    }
}
