//! Logits and log-probabilities of whole rows: what decoding looks at.

use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::product::{Matrix, Target};
use crate::cuda::runtime::{Grid, arguments};
use crate::cuda::{Cuda, Precision};
use crate::{F2Head, Parameter};

impl<P: Precision> Cuda<P> {
    /// `logits: [rows, matrix.rows]`.
    pub(super) fn logits_at(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        logits: u64,
    ) {
        let vectors = Matrix::new(weights.real(matrix), matrix.columns).transposed();
        let hidden = Matrix::new(hidden.at(0), matrix.columns);
        let to = Target::float(logits, matrix.rows);
        self.product([rows, matrix.rows, matrix.columns], hidden, vectors, to);
    }

    /// The GPU's address of where classes end; none, with a failure noted, where memory is out.
    pub(super) fn class_ends(&self, head: &F2Head) -> Option<u64> {
        let ends: Vec<u64> = head.ends.chunks(2).map(pair).collect();
        self.lists.load(&self.stream, &ends)
    }

    /// F²'s full posterior, `[rows, vocabulary]`.
    pub(super) fn posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        log_posterior: &Buffer<f32>,
    ) {
        let (classes, vocabulary) = (head.classes.rows, head.tokens.rows);
        let Some(ends) = self.class_ends(head) else { return };
        let Some(class_logits) = self.scratch(rows * classes * size_of::<f32>()) else { return };
        self.logits_at(rows, head.classes, weights, hidden, class_logits);
        self.logits_at(rows, head.tokens, weights, hidden, log_posterior.at(0));
        self.launch(
            "f2_posterior",
            Grid::blocks(rows, 256).by(classes),
            arguments![classes, vocabulary, ends, class_logits, log_posterior.at(0)],
        );
    }
}

/// Two words in one, the first in the lower half.
fn pair(words: &[u32]) -> u64 {
    u64::from(words[0]) | words.get(1).map_or(0, |&word| u64::from(word) << 32)
}
