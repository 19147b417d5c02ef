//! rep-n and diversity: how much a text repeats itself (Su et al., 2022).

use super::statistic::Statistic;
use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// The n-grams of one order in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// Distinct ones.
    pub(crate) distinct: usize,
    /// All of them.
    pub(crate) total: usize,
}

/// rep-n: the share of n-grams that occurred before in their text, with counts summed over texts.
///
/// The published program omits the last n-gram of each text; the paper does not, nor does this.
///
/// ```
/// let texts = [vec![1, 2, 1, 2, 1], vec![3, 4]];
/// assert_eq!(f2_metrics::rep_n(&texts, 2)?, 2.0 / 5.0);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn rep_n<T: AsRef<[u32]>>(texts: &[T], order: usize) -> Result<f64, Error> {
    let index = NgramIndex::of_texts(texts, order)?;
    let missing = Error::NoNgramsIn { metric: "rep-n", order };
    share(&repeats(&index, order)).of_all(texts.len(), missing)
}

/// The n-grams of one order in every text of an index.
pub(crate) fn repeats(index: &NgramIndex, order: usize) -> Vec<Repeats> {
    let mut last_text = vec![u32::MAX; index.distinct(order)];
    let of_text = |text: usize| {
        let ngrams = index.ngrams(order, text, Windows::Inner);
        let new = |&&ngram: &&u32| {
            std::mem::replace(&mut last_text[ngram as usize], text as u32) != text as u32
        };
        Repeats { distinct: ngrams.iter().filter(new).count(), total: ngrams.len() }
    };
    (0..index.texts()).map(of_text).collect()
}

/// rep-n from the n-gram counts of each text.
pub(crate) fn share(repeats: &[Repeats]) -> Statistic {
    let parts = repeats.iter().map(|each| [(each.total - each.distinct) as f64, each.total as f64]);
    Statistic::Ratios(vec![parts.collect()])
}

/// The product of 1 − rep-n over some orders.
pub(crate) fn diversity<'a>(orders: impl Iterator<Item = &'a Vec<Repeats>>) -> Statistic {
    let parts = |repeats: &'a Vec<Repeats>| {
        repeats.iter().map(|each| [each.distinct as f64, each.total as f64]).collect()
    };
    Statistic::Ratios(orders.map(parts).collect())
}
