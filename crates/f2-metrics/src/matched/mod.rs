//! Scores of texts with one reference each, as in translation and summarisation: BLEU and chrF as
//! in sacreBLEU, ROUGE as in rouge-score.
//!
//! They compare words and characters, so they take strings, not token ids.

mod bleu;
mod chrf;
mod rouge;
mod words;

use std::collections::HashMap;
use std::hash::Hash;

use crate::Error;

pub use bleu::corpus_bleu;
pub use chrf::chrf;
pub use rouge::{Rouge, rouge};

/// Every text must have its reference.
fn check(references: usize, texts: usize) -> Result<(), Error> {
    match (texts, references) {
        (0, _) => Err(Error::NoTexts),
        (_, 0) => Err(Error::NoReferences),
        _ if texts == references => Ok(()),
        _ => Err(Error::Unmatched { texts, references }),
    }
}

/// How often each n-gram occurs.
fn counted<K: Eq + Hash>(ngrams: impl Iterator<Item = K>) -> HashMap<K, u64> {
    let mut counts = HashMap::new();
    ngrams.for_each(|ngram| *counts.entry(ngram).or_insert(0) += 1);
    counts
}

/// The number of n-grams in common, each clipped to its smaller count.
fn common<K: Eq + Hash>(left: &HashMap<K, u64>, right: &HashMap<K, u64>) -> u64 {
    left.iter().map(|(ngram, count)| right.get(ngram).map_or(0, |other| *count.min(other))).sum()
}
