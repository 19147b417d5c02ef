//! Corpus BLEU, as sacreBLEU computes it.

use rayon::prelude::*;

use super::words::{between_spaces, mteval_13a};
use super::{check, common, counted};
use crate::Error;

/// The longest n-grams.
const ORDERS: usize = 4;

/// Counts summed over texts.
#[derive(Clone, Copy, Default)]
struct Counts {
    matches: [u64; ORDERS],
    ngrams: [u64; ORDERS],
    length: u64,
    reference_length: u64,
}

/// BLEU-4 of a whole set of texts, each with its own reference. Text is tokenized as by
/// mteval-v13a, counts are summed over all texts, and the first order without matches counts as
/// half a match, the next such order as a quarter, and so on.
///
/// ```
/// use f2_metrics::corpus_bleu;
/// let score = corpus_bleu(&["the cat sat on the mat"], &["the cat sat on a mat"])?;
/// // 5 of 6 words, 3 of 5 pairs, 2 of 4 triples and 1 of 3 quadruples are the reference's.
/// let expected = (5.0 / 6.0 * 3.0 / 5.0 * 2.0 / 4.0 * 1.0 / 3.0_f64).powf(0.25);
/// assert!((score - expected).abs() < 1e-12);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn corpus_bleu<R: AsRef<str> + Sync, H: AsRef<str> + Sync>(
    references: &[R],
    texts: &[H],
) -> Result<f64, Error> {
    check(references.len(), texts.len())?;
    let pairs = references.par_iter().zip(texts);
    let counts = pairs.map(|(reference, text)| Counts::of(reference.as_ref(), text.as_ref()));
    Ok(counts.reduce(Counts::default, Counts::plus).score())
}

impl Counts {
    fn of(reference: &str, text: &str) -> Self {
        let [reference, text] = [reference, text].map(mteval_13a);
        let [reference, text] =
            [&reference, &text].map(|text| between_spaces(text).collect::<Vec<&str>>());
        let (length, reference_length) = (text.len() as u64, reference.len() as u64);
        let mut counts = Self { length, reference_length, ..Self::default() };
        for order in 1..=ORDERS {
            let [theirs, ours] = [&reference, &text].map(|words| counted(words.windows(order)));
            counts.matches[order - 1] = common(&ours, &theirs);
            counts.ngrams[order - 1] = (length + 1).saturating_sub(order as u64);
        }
        counts
    }

    fn plus(mut self, more: Self) -> Self {
        for order in 0..ORDERS {
            self.matches[order] += more.matches[order];
            self.ngrams[order] += more.ngrams[order];
        }
        self.length += more.length;
        self.reference_length += more.reference_length;
        self
    }

    fn score(&self) -> f64 {
        // Without any match, or without n-grams of some order, there is nothing to smooth.
        if self.matches == [0; ORDERS] || self.ngrams.contains(&0) {
            return 0.0;
        }
        let mut unmatched = 1.0;
        let mut logarithms = 0.0;
        for (matches, ngrams) in self.matches.into_iter().zip(self.ngrams) {
            let matches = if matches == 0 {
                unmatched *= 2.0;
                1.0 / unmatched
            } else {
                matches as f64
            };
            logarithms += (matches / ngrams as f64).ln();
        }
        let shorter = self.reference_length as f64 / self.length as f64;
        (logarithms / ORDERS as f64 + (1.0 - shorter).min(0.0)).exp()
    }
}
