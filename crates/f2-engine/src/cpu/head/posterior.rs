//! Logits and log-probabilities of whole rows: what decoding and perplexity look at.

use super::row::log_sum;
use crate::cpu::product::{Matrix, Products, Write};
use crate::cpu::simd::dot;
use crate::cpu::threads::Threads;
use crate::{F2Head, Parameter};

/// `logits: [rows, matrix.rows]`.
pub(super) fn logits(
    products: Products<'_>,
    rows: usize,
    matrix: Parameter,
    weights: &[f32],
    hidden: &[f32],
    logits: &mut [f32],
) {
    let vectors = Matrix::rows(&weights[matrix.range()], matrix.columns).transposed();
    let hidden = Matrix::rows(hidden, matrix.columns);
    let dims = [rows, matrix.rows, matrix.columns];
    products.product(dims, hidden, vectors, logits, Write::Overwrite);
}

/// Log-probabilities over logits, in place.
pub(super) fn log_softmax(threads: &Threads, rows: usize, columns: usize, logits: &mut [f32]) {
    threads.zip_chunks([(&mut logits[..rows * columns], columns)], |_, [row]| {
        let log_sum = log_sum(row);
        for value in row {
            *value -= log_sum;
        }
    });
}

/// F²'s full posterior, `[rows, vocabulary]`.
pub(super) fn f2_log_posterior(
    products: Products<'_>,
    rows: usize,
    head: &F2Head,
    weights: &[f32],
    hidden: &[f32],
    log_posterior: &mut [f32],
) {
    let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
    logits(products, rows, head.tokens, weights, hidden, log_posterior);
    let out = &mut log_posterior[..rows * vocabulary];
    products.threads.zip_chunks([(out, vocabulary)], |row, [out]| {
        let hidden = &hidden[row * width..(row + 1) * width];
        let vectors = weights[head.classes.range()].chunks(width);
        let logits: Vec<f32> = vectors.map(|vector| dot(hidden, vector)).collect();
        let class_sum = log_sum(&logits);
        for (class, logit) in logits.iter().enumerate() {
            let slice = &mut out[head.members(class)];
            let shift = logit - class_sum - log_sum(slice);
            for value in slice {
                *value += shift;
            }
        }
    });
}
