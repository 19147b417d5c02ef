//! The entropy of n-grams.

use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// The entropy of the n-grams of all texts, in nats.
///
/// ```
/// let texts = [vec![1, 2, 1, 2], vec![1, 2]];
/// assert!((f2_metrics::ngram_entropy(&texts, 1)? - 2_f64.ln()).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn ngram_entropy<T: AsRef<[u32]>>(texts: &[T], order: usize) -> Result<f64, Error> {
    entropy(&NgramIndex::of_texts(texts, order)?, order)
}

pub(crate) fn entropy(index: &NgramIndex, order: usize) -> Result<f64, Error> {
    let all = 0..index.texts();
    let counts = index.counts(order, all.clone(), &vec![1; all.len()], Windows::Inner);
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if total == 0 {
        return Err(Error::NoNgramsIn { metric: "n-gram entropy", order });
    }
    let share = |count: &u32| f64::from(*count) / total as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(share);
    // A single n-gram gives −0.
    Ok(shares.map(|share| -share * share.ln()).sum::<f64>().max(0.0))
}
