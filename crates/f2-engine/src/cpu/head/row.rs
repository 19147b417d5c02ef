//! Softmax losses of single rows of logits. Gradients overwrite the logits.

use crate::cpu::simd::{self, Arithmetic, maximum, vectorised};
use crate::cpu::threads::with_scratch;

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

/// The target of one position, as a column of its row of logits.
#[derive(Clone, Copy)]
pub(super) struct RowTarget<'a> {
    /// The column of the target; `None` if the position only has candidates.
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
            let rest = rest_of_logits(column, logits, log_sum);
            penalty -= rest.max(self.floor).ln();
        }
        [self.likelihood(logits, log_sum), self.penalty * penalty]
    }

    /// [`Self::loss`]; the gradient overwrites the logits.
    pub(super) fn loss_backward(self, logits: &mut [f32]) -> [f32; 2] {
        let target = self.column.map_or(0.0, |column| logits[column]);
        let (log_sum, sum) = exponentials(logits);
        let likelihood = self.column.map_or(0.0, |_| self.weight * (log_sum - target));
        let weight = if self.column.is_some() { self.weight } else { 0.0 };
        let penalty = with_scratch([self.candidates.len()], |[own]| {
            let (penalty, pull) = self.own_gradients(weight, sum, logits, own);
            multiply((f64::from(weight) - pull) as f32 / sum, logits);
            for (column, own) in self.penalised().zip(own) {
                logits[column] = *own;
            }
            penalty
        });
        if let Some(column) = self.column {
            logits[column] -= weight;
        }
        [likelihood, self.penalty * penalty]
    }

    /// Computes the gradients of the candidates' own columns. Returns the penalty and the sum of
    /// the candidates' pulls, which changes the gradients of all other columns in proportion to
    /// their probabilities.
    ///
    /// A candidate of probability `p` has the pull `a = p / (1 - p)`, and its own column gets
    /// `p (1 - s)` with the sum `s` of the others' pulls. Written as `a - p (a + s)`, this would
    /// lose all digits when the model is almost certain, which is when the penalty matters.
    fn own_gradients(
        self,
        weight: f32,
        sum: f32,
        exponentials: &[f32],
        own: &mut [f32],
    ) -> (f32, f64) {
        let (mut penalty, mut pull) = (0.0, 0.0);
        for (column, own) in self.penalised().zip(&mut *own) {
            let rest = rest_of_exponentials(column, exponentials, sum);
            penalty -= rest.max(self.floor).ln();
            let probability = exponentials[column] / sum;
            *own = if rest > self.floor { self.penalty * probability / rest } else { 0.0 };
            pull += f64::from(*own);
        }
        for (column, own) in self.penalised().zip(own) {
            let probability = f64::from(exponentials[column] / sum);
            let push = if *own > 0.0 { self.penalty } else { 0.0 };
            let others = pull - f64::from(*own);
            *own = (probability * (f64::from(weight + push) - others)) as f32;
        }
        (penalty, pull)
    }

    fn likelihood(self, logits: &[f32], log_sum: f32) -> f32 {
        self.column.map_or(0.0, |column| self.weight * (log_sum - logits[column]))
    }

    /// The columns of the candidates, without the target's.
    fn penalised(self) -> impl Iterator<Item = usize> {
        let columns = self.candidates.iter().map(|&candidate| candidate as usize);
        columns.filter(move |&column| Some(column) != self.column)
    }
}

/// `1 - p` of a column. If `p` is large, it is computed as the sum of all other probabilities: a
/// difference from one would lose any remainder below 6e-8.
fn rest_of_logits(column: usize, logits: &[f32], log_sum: f32) -> f32 {
    let probability = (logits[column] - log_sum).exp();
    if probability < 0.5 {
        return 1.0 - probability;
    }
    let share = |logits: &[f32]| (self::log_sum(logits) - log_sum).exp();
    share(&logits[..column]) + share(&logits[column + 1..])
}

/// [`rest_of_logits`], from the exponentials and their sum.
fn rest_of_exponentials(column: usize, exponentials: &[f32], sum: f32) -> f32 {
    let probability = exponentials[column] / sum;
    if probability < 0.5 {
        return 1.0 - probability;
    }
    (total(&exponentials[..column]) + total(&exponentials[column + 1..])) / sum
}

vectorised! {
    fn total(x: &[f32]) -> f32 = total_kernel
}

#[inline(always)]
fn total_kernel<A: Arithmetic>(x: &[f32]) -> f32 {
    simd::sum_by(x, |x| x)
}
