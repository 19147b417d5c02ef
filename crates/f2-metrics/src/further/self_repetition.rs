//! Self-repetition: n-grams that also occur in other texts (Salkar et al., 2022).

use super::statistic::Statistic;
use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// The authors' n-gram length.
pub const SELF_REPETITION_ORDER: usize = 4;

/// Self-repetition: the mean over texts of ln(1 + Σ over the text's distinct n-grams of the number
/// of other texts that contain it).
///
/// Equal to `self_repetition_score` of the Python package `diversity`.
///
/// ```
/// let texts = [vec![1, 2, 3, 4, 5], vec![9, 1, 2, 3, 4], vec![1, 2]];
/// let expected = 2.0 / 3.0 * 2_f64.ln();
/// assert!((f2_metrics::self_repetition(&texts, 4)? - expected).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn self_repetition<T: AsRef<[u32]>>(texts: &[T], order: usize) -> Result<f64, Error> {
    let index = NgramIndex::of_texts(texts, order)?;
    mean(&index, order).of_all(texts.len(), Error::NoTexts)
}

pub(crate) fn mean(index: &NgramIndex, order: usize) -> Statistic {
    // The number of texts that contain each n-gram.
    let mut texts = vec![0_u64; index.distinct(order)];
    for_each_distinct(index, order, |_, ngram| texts[ngram] += 1);
    let mut elsewhere = vec![0_u64; index.texts()];
    for_each_distinct(index, order, |text, ngram| elsewhere[text] += texts[ngram] - 1);
    Statistic::Mean(elsewhere.iter().map(|sum| Some((*sum as f64 + 1.0).ln())).collect())
}

/// Calls `see` with every text and each of its distinct n-grams.
fn for_each_distinct(index: &NgramIndex, order: usize, mut see: impl FnMut(usize, usize)) {
    let mut last_text = vec![u32::MAX; index.distinct(order)];
    for text in 0..index.texts() {
        for &ngram in index.ngrams(order, text, Windows::Inner) {
            if std::mem::replace(&mut last_text[ngram as usize], text as u32) != text as u32 {
                see(text, ngram as usize);
            }
        }
    }
}
