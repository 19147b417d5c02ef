//! seq-rep-n: the share of repeated n-grams, text by text (Welleck et al., 2020).

use super::rep_n::{Repeats, repeats};
use super::statistic::Statistic;
use crate::Error;
use crate::ngrams::NgramIndex;

/// The order the authors report.
pub const SEQ_REP_ORDER: usize = 4;

/// seq-rep-n: 1 − distinct n-grams / n-grams of each text, averaged over the texts that have any.
///
/// ```
/// let texts = [vec![1, 2, 1, 2, 1], vec![3, 4], vec![5]];
/// assert_eq!(f2_metrics::seq_rep(&texts, 2)?, 0.25);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn seq_rep<T: AsRef<[u32]>>(texts: &[T], order: usize) -> Result<f64, Error> {
    let index = NgramIndex::of_texts(texts, order)?;
    let missing = Error::NoNgramsIn { metric: "seq-rep", order };
    mean(&repeats(&index, order)).of_all(texts.len(), missing)
}

/// seq-rep-n from the n-gram counts of each text.
pub(crate) fn mean(repeats: &[Repeats]) -> Statistic {
    let share =
        |each: &Repeats| (each.total > 0).then(|| 1.0 - each.distinct as f64 / each.total as f64);
    Statistic::Mean(repeats.iter().map(share).collect())
}
