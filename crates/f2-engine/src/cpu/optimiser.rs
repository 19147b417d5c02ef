//! AdamW: one pass over the flat buffers.

use std::ops::Range;

use super::Cpu;
use super::memory::Buffer;
use super::simd::{Arithmetic, sum_by, vectorised};
use crate::{AdamW, Decay, Moments, NORM_BLOCK, Optimiser};

/// Elements processed by one task. The norm has one partial sum per task, so the order of summation
/// does not depend on the number of threads.
const BLOCK: usize = 1 << 15;

impl Optimiser for Cpu {
    fn global_norm(&self, gradients: &Buffer, norm: &mut Buffer) {
        let gradients: &[f32] = gradients;
        norm[0] = self.with_partial(2 * gradients.len().div_ceil(BLOCK), |partial| {
            self.threads.zip_chunks([(&mut *partial, 2)], |index, [partial]| {
                let start = index * BLOCK;
                let block = &gradients[start..gradients.len().min(start + BLOCK)];
                let sum = double_square_sum(block);
                // The double as the sum of two floats.
                partial[0] = sum as f32;
                partial[1] = (sum - f64::from(partial[0])) as f32;
            });
            let sums = partial.chunks(2).map(|part| f64::from(part[0]) + f64::from(part[1]));
            sums.sum::<f64>().sqrt() as f32
        });
    }

    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer,
        weights: &mut Buffer,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer,
    ) {
        let all = 0..weights.len();
        self.adamw_piece(settings, decayed, norm, all, 0, weights, moments, gradients);
    }

    fn square_sums(&self, range: Range<usize>, gradients: &Buffer, sums: &mut Buffer, at: usize) {
        let (len, blocks) = (range.len(), range.len().div_ceil(NORM_BLOCK));
        let gradients = &gradients[range];
        let sums = &mut sums[at..at + 2 * blocks];
        self.threads.zip_chunks([(sums, 2)], |index, [sum]| {
            let start = index * NORM_BLOCK;
            let block = &gradients[start..len.min(start + NORM_BLOCK)];
            let bits = double_square_sum(block).to_bits();
            sum[0] = f32::from_bits(bits as u32);
            sum[1] = f32::from_bits((bits >> 32) as u32);
        });
    }

    fn norm_of_sums(&self, blocks: usize, sums: &Buffer, norm: &mut Buffer) {
        let double = |halves: &[f32]| {
            f64::from_bits(u64::from(halves[0].to_bits()) | u64::from(halves[1].to_bits()) << 32)
        };
        norm[0] = sums[..2 * blocks].chunks(2).map(double).sum::<f64>().sqrt() as f32;
    }

    fn adamw_piece(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer,
        piece: Range<usize>,
        at: usize,
        weights: &mut Buffer,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer,
    ) {
        let (threads, len) = (&self.threads, piece.len());
        let gradients = &mut gradients[at..at + len];
        if !norm[0].is_finite() {
            threads.zip_chunks([(gradients, BLOCK)], |_, [gradients]| gradients.fill(0.0));
            return;
        }
        let rates = Rates::of(settings, norm[0]);
        let Moments { first, second } = moments;
        let weights = &mut weights[piece.clone()];
        let [first, second] = [first, second].map(|moment| &mut moment[at..at + len]);
        let buffers = [weights, first, second, gradients];
        threads.zip_chunks(
            buffers.map(|buffer| (buffer, BLOCK)),
            |index, [weights, first, second, gradients]| {
                let start = piece.start + index * BLOCK;
                for (range, decays) in split_by_decay(start..start + weights.len(), decayed) {
                    let range = range.start - start..range.end - start;
                    let rates = if decays { rates } else { rates.without_decay() };
                    update(
                        rates,
                        &mut weights[range.clone()],
                        &mut first[range.clone()],
                        &mut second[range.clone()],
                        &mut gradients[range],
                    );
                }
            },
        );
    }
}

/// Splits `range` where decay begins or ends; the flag says whether a part is decayed.
fn split_by_decay(range: Range<usize>, decayed: &[Range<usize>]) -> Vec<(Range<usize>, bool)> {
    let mut parts = Vec::new();
    let mut start = range.start;
    let first = decayed.partition_point(|decay| decay.end <= start);
    for decay in decayed[first..].iter().take_while(|decay| decay.start < range.end) {
        if start < decay.start {
            parts.push((start..decay.start, false));
        }
        let end = decay.end.min(range.end);
        parts.push((start.max(decay.start)..end, true));
        start = end;
    }
    if start < range.end {
        parts.push((start..range.end, false));
    }
    parts
}

/// The settings in the form used by the innermost loop.
#[derive(Clone, Copy)]
struct Rates {
    /// The factor by which clipping scales gradients.
    clip: f32,
    /// The weight's factor in the gradient, for decay as a penalty.
    penalty: f32,
    /// The factor of the weight itself, for decoupled decay.
    keep: f32,
    /// The factors of the old moment and of the new value.
    first: [f32; 2],
    second: [f32; 2],
    /// The learning rate divided by the bias correction of the first moment.
    step: f32,
    /// The reciprocal root of the bias correction of the second moment.
    root: f32,
    epsilon: f32,
}

impl Rates {
    fn of(settings: AdamW, norm: f32) -> Self {
        let AdamW { learning_rate, beta1, beta2, weight_decay, .. } = settings;
        let norm = f64::from(norm);
        let correction = |beta: f64| 1.0 - beta.powf(settings.update as f64);
        let decoupled = settings.decay == Decay::Decoupled;
        Self {
            clip: if norm > settings.clip { (settings.clip / norm) as f32 } else { 1.0 },
            penalty: if decoupled { 0.0 } else { weight_decay as f32 },
            keep: if decoupled { (1.0 - learning_rate * weight_decay) as f32 } else { 1.0 },
            first: [beta1 as f32, (1.0 - beta1) as f32],
            second: [beta2 as f32, (1.0 - beta2) as f32],
            step: (learning_rate / correction(beta1)) as f32,
            root: (1.0 / correction(beta2).sqrt()) as f32,
            epsilon: settings.epsilon as f32,
        }
    }

    fn without_decay(self) -> Self {
        Self { penalty: 0.0, keep: 1.0, ..self }
    }
}

vectorised! {
    fn update(
        rates: Rates, weights: &mut [f32], first: &mut [f32], second: &mut [f32],
        gradients: &mut [f32],
    ) = update_kernel
}

#[inline(always)]
fn update_kernel<A: Arithmetic>(
    rates: Rates,
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradients: &mut [f32],
) {
    let len = weights.len();
    let (first, second) = (&mut first[..len], &mut second[..len]);
    let gradients = &mut gradients[..len];
    for i in 0..len {
        let gradient = A::mul_add(rates.penalty, weights[i], gradients[i] * rates.clip);
        let mean = A::mul_add(rates.first[0], first[i], rates.first[1] * gradient);
        let square = rates.second[1] * gradient * gradient;
        let mean_square = A::mul_add(rates.second[0], second[i], square);
        first[i] = mean;
        second[i] = mean_square;
        let deviation = A::mul_add(mean_square.sqrt(), rates.root, rates.epsilon);
        weights[i] = A::mul_add(-rates.step, mean / deviation, weights[i] * rates.keep);
        gradients[i] = 0.0;
    }
}

/// The sum of squares: in `f32` lanes over short pieces, which are summed in `f64`.
fn double_square_sum(x: &[f32]) -> f64 {
    x.chunks(1 << 10).map(|piece| f64::from(square_sum(piece))).sum()
}

vectorised! {
    fn square_sum(x: &[f32]) -> f32 = square_sum_kernel
}

#[inline(always)]
fn square_sum_kernel<A: Arithmetic>(x: &[f32]) -> f32 {
    sum_by(x, |x| x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_where_decay_changes() {
        let parts = split_by_decay(10..50, &[0..20, 30..40, 48..60]);
        assert_eq!(
            parts,
            [(10..20, true), (20..30, false), (30..40, true), (40..48, false), (48..50, true)]
        );
        assert_eq!(split_by_decay(0..5, &[]), [(0..5, false)]);
        assert_eq!(split_by_decay(5..9, &[0..3, 20..30]), [(5..9, false)]);
    }
}
