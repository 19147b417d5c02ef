//! Scores of texts each of which has a reference of its own, as in translation and summarisation:
//! BLEU and chrF as sacreBLEU has them, ROUGE as rouge-score has it.
//!
//! These compare words and characters, so they take text, not token ids.

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

/// How many n-grams both have, each as often as it occurs in both.
fn common<K: Eq + Hash>(left: &HashMap<K, u64>, right: &HashMap<K, u64>) -> u64 {
    left.iter().map(|(ngram, count)| right.get(ngram).map_or(0, |other| *count.min(other))).sum()
}
