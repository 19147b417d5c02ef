//! The n-gram Vendi score: the effective number of distinct texts (Friedman and Dieng, 2023).

use rayon::prelude::*;

use super::symmetric::Symmetric;
use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// N-grams of the orders 1 to this are used, as in the authors' program.
pub const VENDI_ORDERS: usize = 4;
/// The largest number of texts: with more, the matrix of all pairs takes gigabytes and minutes.
pub const VENDI_TEXTS: usize = 8192;

/// The n-gram Vendi score: the exponential of the entropy of the eigenvalues of the similarity
/// matrix divided by the number of texts. It ranges from 1, if all texts are alike, to their
/// number.
///
/// The similarity of two texts is the cosine similarity of their n-gram counts, averaged over the
/// orders 1 to `max_order`. Equal to `ngram_vendi_score` of the Python package `vendi-score`.
///
/// ```
/// let texts = [[1, 2, 3, 4], [1, 2, 3, 4], [5, 6, 7, 8]];
/// let expected = (2.0 / 3.0_f64).powf(-2.0 / 3.0) * (1.0 / 3.0_f64).powf(-1.0 / 3.0);
/// assert!((f2_metrics::vendi_score(&texts, 4)? - expected).abs() < 1e-12);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn vendi_score<T: AsRef<[u32]>>(texts: &[T], max_order: usize) -> Result<f64, Error> {
    score(&NgramIndex::of_texts(texts, max_order)?, max_order.max(1))
}

pub(crate) fn score(index: &NgramIndex, max_order: usize) -> Result<f64, Error> {
    let texts = index.texts();
    if texts > VENDI_TEXTS {
        return Err(Error::TooManyTexts { metric: "the Vendi score", texts, most: VENDI_TEXTS });
    }
    if (0..texts).all(|text| index.length(text) == 0) {
        return Err(Error::NoTokens("texts"));
    }
    let values = similarities(index, max_order).eigenvalues();
    let shares = values.iter().map(|value| value / texts as f64).filter(|share| *share > 0.0);
    Ok(shares.map(|share| -share * share.ln()).sum::<f64>().exp())
}

/// The n-grams of each text with their weights, or the texts of each n-gram with its weights.
type Weighted = Vec<Vec<(u32, f64)>>;

/// The lower triangle of the similarity matrix.
fn similarities(index: &NgramIndex, max_order: usize) -> Symmetric {
    let texts = index.texts();
    let mut rows = vec![0.0; texts * texts];
    for order in 1..=max_order {
        let of_text: Weighted = (0..texts)
            .into_par_iter()
            .map(|text| weights(index.ngrams(order, text, Windows::Inner), max_order))
            .collect();
        let mut with_ngram: Weighted = vec![Vec::new(); index.distinct(order)];
        for (text, ngrams) in (0..).zip(&of_text) {
            for (ngram, weight) in ngrams {
                with_ngram[*ngram as usize].push((text, *weight));
            }
        }
        rows.par_chunks_mut(texts).zip(&of_text).enumerate().for_each(|(text, (row, ngrams))| {
            for (ngram, weight) in ngrams {
                let others = &with_ngram[*ngram as usize];
                let others = others.iter().take_while(|(other, _)| *other as usize <= text);
                others.for_each(|(other, theirs)| row[*other as usize] += weight * theirs);
            }
        });
    }
    Symmetric::new(texts, rows)
}

/// The distinct n-grams of a text with their counts, scaled so that the text's similarity with
/// itself is 1 / `orders`: one order's part of the mean.
fn weights(ngrams: &[u32], orders: usize) -> Vec<(u32, f64)> {
    let mut sorted = ngrams.to_vec();
    sorted.sort_unstable();
    let counts = sorted.chunk_by(|one, other| one == other);
    let mut weights: Vec<(u32, f64)> = counts.map(|equal| (equal[0], equal.len() as f64)).collect();
    let squares: f64 = weights.iter().map(|(_, count)| count * count).sum();
    let norm = (squares * orders as f64).sqrt();
    weights.iter_mut().for_each(|(_, count)| *count /= norm);
    weights
}
