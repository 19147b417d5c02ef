//! Dropout masks from Philox: drawn where they are needed, never stored.

use super::simd::{Arithmetic, vectorised};
use crate::random::{ROUNDS, round};
use crate::{Cpu, Dropout, Moment};

/// Counters drawn side by side, for as many lanes.
const WIDE: usize = 8;

/// One site's masks at one moment.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    moment: Moment,
    site: u32,
    threshold: u32,
    scale: f32,
}

impl Mask {
    pub(super) fn of(dropout: Dropout<'_, Cpu>) -> Self {
        let probability = f64::from(dropout.probability);
        Self {
            moment: *dropout.clock,
            site: dropout.site,
            threshold: (probability * 4_294_967_296.0) as u32,
            scale: (1.0 / (1.0 - probability)) as f32,
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

    /// `kept = dropout(x)` for one position; also the gradient's way back.
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

    /// Calls `each(column, factor)` for all columns of a position, the factor being 0 or the
    /// scale.
    #[inline(always)]
    fn for_each(self, row: usize, width: usize, mut each: impl FnMut(usize, f32)) {
        let position = self.moment.first_position + row as u64;
        let first = position * width.div_ceil(4) as u64;
        let key = [self.moment.seed as u32, (self.moment.seed >> 32) as u32];
        for start in (0..width).step_by(4 * WIDE) {
            let block = first + (start / 4) as u64;
            let words = philox_wide(block, self.site, self.moment.step, key);
            let factor = |column: usize| {
                let word = words[column % 4][column / 4];
                if word >= self.threshold { self.scale } else { 0.0 }
            };
            if start + 4 * WIDE <= width {
                for column in 0..4 * WIDE {
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

/// Philox of `WIDE` counters that follow each other; `result[word][counter]`.
#[inline(always)]
fn philox_wide(block: u64, site: u32, step: u32, mut key: [u32; 2]) -> [[u32; WIDE]; 4] {
    let mut words = [[0; WIDE], [0; WIDE], [site; WIDE], [step; WIDE]];
    for lane in 0..WIDE {
        let counter = block + lane as u64;
        words[0][lane] = counter as u32;
        words[1][lane] = (counter >> 32) as u32;
    }
    for _ in 0..ROUNDS {
        for lane in 0..WIDE {
            let counter = [words[0][lane], words[1][lane], words[2][lane], words[3][lane]];
            let mixed = round(counter, key);
            for word in 0..4 {
                words[word][lane] = mixed[word];
            }
        }
        key = crate::random::next_key(key);
    }
    words
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

    /// The definition in [`Dropout`]'s documentation, word by word.
    #[test]
    fn masks_follow_their_definition() {
        for width in [1, 4, 30, 32, 37, 256] {
            let mut kept = vec![0.0; width];
            mask(11).keep(3, &vec![1.0; width], &mut kept);
            for (column, &kept) in kept.iter().enumerate() {
                let block = 14 * width.div_ceil(4) as u64 + column as u64 / 4;
                let counter = [block as u32, (block >> 32) as u32, 5, 9];
                let word = philox(counter, [0x89ab_cdef, 0x0123_4567])[column % 4];
                let keeps = f64::from(word) >= (f64::from(0.3_f32) * 4_294_967_296.0).floor();
                assert_eq!(kept > 0.0, keeps);
                assert!(!keeps || (kept - 1.0 / 0.7).abs() < 1e-6);
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
