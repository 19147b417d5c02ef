//! Self-BLEU: how alike the texts of a set are.

use std::ops::Range;

use rayon::prelude::*;

use crate::ngrams::{NgramIndex, Windows};
use crate::{BleuParts, Convention, Error, Smoothing};

/// Self-BLEU-1 to Self-BLEU-`max_order`: how alike the texts of a set are.
///
/// Every text is scored by BLEU with all others as references, and the scores are averaged.
/// Time and memory are linear in the number of tokens: an n-gram's matches are clipped by its
/// largest count in any other text, for which its two largest counts are enough.
///
/// The conventions differ in the smoothing of orders without a match: [`Smoothing::AUTHORS`] and
/// [`Smoothing::NLTK`].
///
/// ```
/// use f2_metrics::{Convention, self_bleu};
/// let texts = [[1, 2, 3, 4], [1, 2, 3, 5]];
/// let scores = self_bleu(&texts, 2, Convention::Textbook)?;
/// assert!((scores[0] - 3.0 / 4.0).abs() < 1e-15);
/// assert!((scores[1] - (3.0 / 4.0 * 2.0 / 3.0_f64).sqrt()).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn self_bleu<T: AsRef<[u32]>>(
    texts: &[T],
    max_order: usize,
    convention: Convention,
) -> Result<Vec<f64>, Error> {
    let parts = self_bleu_parts(texts, max_order)?;
    let scores = scores(&parts, max_order, convention);
    Ok(scores.iter().map(|each| each.iter().sum::<f64>() / texts.len() as f64).collect())
}

/// The parts of each text's Self-BLEU, for other smoothings.
///
/// ```
/// use f2_metrics::{Smoothing, self_bleu_parts};
/// let parts = self_bleu_parts(&[vec![1, 1, 2], vec![1, 3]], 2)?;
/// assert_eq!(parts[0].matches, [1, 0]);
/// assert_eq!(parts[0].closest_length, 2);
/// assert!((parts[0].scores(Smoothing::METHOD1)[0] - 1.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn self_bleu_parts<T: AsRef<[u32]>>(
    texts: &[T],
    max_order: usize,
) -> Result<Vec<BleuParts>, Error> {
    let index = NgramIndex::new(texts.iter().map(AsRef::as_ref), max_order)?;
    parts(&index, 0..texts.len())
}

/// The parts of each text in a range of the index, against the others of the range.
pub(crate) fn parts(index: &NgramIndex, texts: Range<usize>) -> Result<Vec<BleuParts>, Error> {
    if texts.len() < 2 {
        return Err(Error::OneText(texts.len()));
    }
    let matches: Vec<Vec<u32>> = (1..=index.max_order())
        .into_par_iter()
        .map(|order| matches(index, order, texts.clone()))
        .collect();
    let lengths: Vec<usize> = texts.map(|text| index.length(text)).collect();
    let closest = closest_lengths(&lengths);
    let parts = (0..lengths.len()).map(|text| BleuParts {
        matches: matches.iter().map(|order| order[text]).collect(),
        length: lengths[text],
        closest_length: closest[text],
    });
    Ok(parts.collect())
}

/// Every text's score, by order.
pub(crate) fn scores(
    parts: &[BleuParts],
    max_order: usize,
    convention: Convention,
) -> Vec<Vec<f64>> {
    let smoothing = match convention {
        Convention::Paper => Smoothing::AUTHORS,
        Convention::Textbook => Smoothing::NLTK,
    };
    let by_text: Vec<Vec<f64>> = parts.par_iter().map(|parts| parts.scores(smoothing)).collect();
    (0..max_order).map(|order| by_text.iter().map(|scores| scores[order]).collect()).collect()
}

/// The state of one n-gram: its two largest counts in single texts, and its count so far in the
/// text being read.
#[derive(Clone, Copy)]
struct Peaks {
    largest: u32,
    /// The text with the largest count.
    owner: u32,
    /// The largest count in any text but the owner.
    second: u32,
    /// The text it was last seen in.
    reading: u32,
    /// Its count in that text so far.
    seen: u32,
}

impl Peaks {
    const UNSEEN: Self =
        Self { largest: 0, owner: u32::MAX, second: 0, reading: u32::MAX, seen: 0 };

    /// Adds an occurrence in a text and returns its count there, from 1.
    fn see(&mut self, text: u32) -> u32 {
        self.seen = if self.reading == text { self.seen + 1 } else { 1 };
        self.reading = text;
        if self.owner == text {
            self.largest = self.seen;
        } else if self.seen > self.largest {
            self.second = self.largest;
            (self.largest, self.owner) = (self.seen, text);
        } else {
            self.second = self.second.max(self.seen);
        }
        self.seen
    }

    /// The largest count in any other text.
    fn elsewhere(&self, text: u32) -> u32 {
        if self.owner == text { self.second } else { self.largest }
    }
}

/// Matching n-grams of one order in every text. The k-th occurrence of an n-gram in a text
/// matches if some other text has it k times.
fn matches(index: &NgramIndex, order: usize, texts: Range<usize>) -> Vec<u32> {
    let ngrams = |text| index.ngrams(order, text, Windows::Inner);
    let mut peaks = vec![Peaks::UNSEEN; index.distinct(order)];
    let mut ordinals = Vec::with_capacity(texts.clone().map(|text| ngrams(text).len()).sum());
    for text in texts.clone() {
        let seen = ngrams(text).iter().map(|&ngram| peaks[ngram as usize].see(text as u32));
        ordinals.extend(seen);
    }
    let mut ordinals = ordinals.into_iter();
    let matching = texts.map(|text| {
        let pairs = ngrams(text).iter().zip(&mut ordinals);
        let matching = pairs
            .filter(|&(&ngram, ordinal)| ordinal <= peaks[ngram as usize].elsewhere(text as u32));
        matching.count() as u32
    });
    matching.collect()
}

/// For each length, the closest one among the others; of two equally close, the shorter.
fn closest_lengths(lengths: &[usize]) -> Vec<usize> {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let closest = |&length: &usize| {
        let first = sorted.partition_point(|&other| other < length);
        // Equal lengths are adjacent, so a second text of this length follows the first.
        let longer = sorted.get(first + 1).copied();
        let shorter = first.checked_sub(1).map(|before| sorted[before]);
        let others = [shorter, longer].into_iter().flatten();
        others.min_by_key(|&other| (other.abs_diff(length), other)).unwrap_or(0)
    };
    lengths.iter().map(closest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_has_no_others() {
        assert_eq!(self_bleu(&[[1, 2]], 1, Convention::Paper), Err(Error::OneText(1)));
    }

    #[test]
    fn identical_texts_score_one() {
        let texts = [[1, 2, 3, 1], [1, 2, 3, 1]];
        for convention in [Convention::Paper, Convention::Textbook] {
            assert_eq!(self_bleu(&texts, 3, convention).unwrap(), [1.0; 3]);
        }
    }

    #[test]
    fn the_closest_length_prefers_a_twin_then_the_shorter() {
        assert_eq!(closest_lengths(&[4, 6, 4, 8]), [4, 4, 4, 6]);
        assert_eq!(closest_lengths(&[5, 7, 9]), [7, 5, 7]);
        assert_eq!(closest_lengths(&[0, 3]), [3, 0]);
    }

    #[test]
    fn an_empty_text_scores_zero() {
        let parts = self_bleu_parts(&[vec![], vec![1, 2]], 2).unwrap();
        assert_eq!(parts[0].scores(Smoothing::AUTHORS), [0.0, 0.0]);
    }
}
