//! Distinct: how little a text repeats itself.

use std::ops::Range;

use rayon::prelude::*;

use crate::ngrams::{NgramIndex, Windows};
use crate::{Convention, Error};

/// The authors exclude texts of up to this many tokens.
const SHORT: usize = 5;

/// Distinct-1 to Distinct-`max_order`: the share of n-grams a text does not repeat, averaged
/// over the texts.
///
/// * paper: distinct n-grams / text length, at most (L−n+1)/L; texts of 5 tokens or fewer are
///   excluded;
/// * textbook: distinct n-grams / number of n-grams; texts without an n-gram are excluded.
///
/// ```
/// use f2_metrics::{Convention, distinct};
/// let texts = [[1, 2, 1, 2, 1, 3]];
/// assert_eq!(distinct(&texts, 2, Convention::Paper)?, [3.0 / 6.0, 3.0 / 6.0]);
/// assert_eq!(distinct(&texts, 2, Convention::Textbook)?, [3.0 / 6.0, 3.0 / 5.0]);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn distinct<T: AsRef<[u32]>>(
    texts: &[T],
    max_order: usize,
    convention: Convention,
) -> Result<Vec<f64>, Error> {
    let index = NgramIndex::new(texts.iter().map(AsRef::as_ref), max_order)?;
    let weights = vec![1; texts.len()];
    (1..)
        .zip(shares(&index, 0..texts.len(), convention))
        .map(|(order, shares)| mean(&shares, &weights, order, convention))
        .collect()
}

/// Every text's share, by order; `None` if the text is excluded.
pub(crate) fn shares(
    index: &NgramIndex,
    texts: Range<usize>,
    convention: Convention,
) -> Vec<Vec<Option<f64>>> {
    let of_order = |order: usize| {
        let mut last_text = vec![u32::MAX; index.distinct(order)];
        let share = |text: usize| {
            let length = index.length(text);
            if length < shortest(order, convention) {
                return None;
            }
            let ngrams = index.ngrams(order, text, Windows::Inner);
            let new = |&&ngram: &&u32| {
                std::mem::replace(&mut last_text[ngram as usize], text as u32) != text as u32
            };
            let distinct = ngrams.iter().filter(new).count() as f64;
            Some(match convention {
                Convention::Paper => distinct / length as f64,
                Convention::Textbook => distinct / ngrams.len() as f64,
            })
        };
        texts.clone().map(share).collect()
    };
    (1..=index.max_order()).into_par_iter().map(of_order).collect()
}

/// The weighted mean share.
pub(crate) fn mean(
    shares: &[Option<f64>],
    weights: &[u32],
    order: usize,
    convention: Convention,
) -> Result<f64, Error> {
    let (mut sum, mut texts) = (0.0, 0_u64);
    for (share, &weight) in shares.iter().zip(weights) {
        if let Some(share) = share {
            sum += share * f64::from(weight);
            texts += u64::from(weight);
        }
    }
    match texts {
        0 => Err(Error::AllTooShort { order, shortest: shortest(order, convention) }),
        _ => Ok(sum / texts as f64),
    }
}

/// The length of the shortest text that is included.
fn shortest(order: usize, convention: Convention) -> usize {
    match convention {
        Convention::Paper => SHORT + 1,
        Convention::Textbook => order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_left_out_or_leave_nothing() {
        let texts = [vec![1, 1, 1, 1, 1, 1], vec![1, 2, 3, 4, 5], vec![]];
        assert_eq!(distinct(&texts, 1, Convention::Paper).unwrap(), [1.0 / 6.0]);
        let error = distinct(&texts[1..], 1, Convention::Paper).unwrap_err();
        assert_eq!(error, Error::AllTooShort { order: 1, shortest: 6 });
    }

    #[test]
    fn an_order_longer_than_a_text_counts_nothing_for_the_paper() {
        let texts = [[1, 2, 3, 4, 5, 6]];
        assert_eq!(distinct(&texts, 8, Convention::Paper).unwrap()[6..], [0.0, 0.0]);
    }
}
