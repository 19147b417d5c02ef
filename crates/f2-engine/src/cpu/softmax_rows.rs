//! Softmax losses of single rows: logits in, loss out, the gradient over the logits in place.

use super::scratch::with_scratch;
use super::simd::{self, Arithmetic, maximum, vectorised};

vectorised! {
    /// `ln Σ exp`.
    pub(super) fn log_sum(logits: &[f32]) -> f32 = log_sum_kernel
}

#[inline(always)]
fn log_sum_kernel<A: Arithmetic>(logits: &[f32]) -> f32 {
    let largest = maximum(logits);
    let mut sum = 0.0;
    let mut piece = [0.0; 256];
    for logits in logits.chunks(piece.len()) {
        let piece = &mut piece[..logits.len()];
        piece.copy_from_slice(logits);
        sum += simd::exponentials::<A>(1.0, largest, piece);
    }
    largest + sum.ln()
}

vectorised! {
    /// Turns logits into `exp(logit - maximum)`; returns their log-sum and sum.
    fn exponentials(logits: &mut [f32]) -> (f32, f32) = exponentials_kernel
}

#[inline(always)]
fn exponentials_kernel<A: Arithmetic>(logits: &mut [f32]) -> (f32, f32) {
    let largest = maximum(logits);
    let sum = simd::exponentials::<A>(1.0, largest, logits);
    (largest + sum.ln(), sum)
}

vectorised! {
    fn multiply(factor: f32, x: &mut [f32]) = multiply_kernel
}

#[inline(always)]
fn multiply_kernel<A: Arithmetic>(factor: f32, x: &mut [f32]) {
    for x in x {
        *x *= factor;
    }
}

/// One position's target among the columns of a row.
#[derive(Clone, Copy)]
pub(super) struct RowTarget<'a> {
    /// The target's column; `None` for a position that only has candidates.
    pub(super) column: Option<usize>,
    pub(super) weight: f32,
    /// Columns to penalise.
    pub(super) candidates: &'a [u32],
    pub(super) penalty: f32,
    pub(super) floor: f32,
}

impl RowTarget<'_> {
    /// The weighted negative log-likelihood and penalties.
    pub(super) fn loss(self, logits: &[f32]) -> [f32; 2] {
        let log_sum = log_sum(logits);
        let mut penalty = 0.0;
        for column in self.penalised() {
            let rest = 1.0 - (logits[column] - log_sum).exp();
            penalty -= rest.max(self.floor).ln();
        }
        [self.likelihood(logits, log_sum), self.penalty * penalty]
    }

    /// [`Self::loss`], its gradient written over the logits.
    pub(super) fn loss_backward(self, logits: &mut [f32]) -> [f32; 2] {
        let target = self.column.map_or(0.0, |column| logits[column]);
        let (log_sum, sum) = exponentials(logits);
        let likelihood = self.column.map_or(0.0, |_| self.weight * (log_sum - target));
        let weight = if self.column.is_some() { self.weight } else { 0.0 };
        let penalty = with_scratch([self.candidates.len()], |[pushes]| {
            let (penalty, pull) = self.pushes(sum, logits, pushes);
            multiply((weight - pull) / sum, logits);
            for (column, push) in self.penalised().zip(pushes) {
                logits[column] += *push;
            }
            penalty
        });
        if let Some(column) = self.column {
            logits[column] -= weight;
        }
        [likelihood, self.penalty * penalty]
    }

    /// What the candidates add to their own columns' gradients; returns the penalty and what
    /// they take from all columns together, in proportion to probability.
    fn pushes(self, sum: f32, exponentials: &[f32], pushes: &mut [f32]) -> (f32, f32) {
        let (mut penalty, mut pull) = (0.0, 0.0);
        for (column, push) in self.penalised().zip(pushes) {
            let probability = exponentials[column] / sum;
            let rest = 1.0 - probability;
            penalty -= rest.max(self.floor).ln();
            *push = if rest > self.floor { self.penalty * probability / rest } else { 0.0 };
            pull += *push;
        }
        (penalty, pull)
    }

    fn likelihood(self, logits: &[f32], log_sum: f32) -> f32 {
        self.column.map_or(0.0, |column| self.weight * (log_sum - logits[column]))
    }

    /// The candidates' columns, the target left out.
    fn penalised(self) -> impl Iterator<Item = usize> {
        let columns = self.candidates.iter().map(|&candidate| candidate as usize);
        columns.filter(move |&column| Some(column) != self.column)
    }
}
