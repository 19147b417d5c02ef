//! chrF and chrF++, as sacreBLEU computes them.

use rayon::prelude::*;

use super::words::{is_space, off_punctuation};
use super::{check, common, counted};
use crate::Error;

/// The longest character n-grams.
const CHARACTERS: usize = 6;
/// Recall counts this many times as much as precision.
const BETA: f64 = 2.0;

/// N-grams of a text, of its reference, and of both, for one order.
type Counts = [u64; 3];

/// chrF of a whole set of texts, each with its own reference: the F-score of the precision and
/// recall of n-grams of 1 to 6 characters without white space, each averaged over the orders. A
/// `word_order` above 0 adds word n-grams of the orders 1 to `word_order`: 0 is chrF, 2 is chrF++.
///
/// ```
/// use f2_metrics::chrf;
/// assert_eq!(chrf(&["a cat"], &["a cat"], 0)?, 1.0);
/// assert_eq!(chrf(&["a cat"], &["dog"], 0)?, 0.0);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn chrf<R: AsRef<str> + Sync, H: AsRef<str> + Sync>(
    references: &[R],
    texts: &[H],
    word_order: usize,
) -> Result<f64, Error> {
    check(references.len(), texts.len())?;
    let none = || vec![[0; 3]; CHARACTERS + word_order];
    let pairs = references.par_iter().zip(texts);
    let counts = pairs.map(|(reference, text)| of(reference.as_ref(), text.as_ref(), word_order));
    Ok(score(&counts.reduce(none, plus)))
}

fn of(reference: &str, text: &str, word_order: usize) -> Vec<Counts> {
    let characters = |text: &str| text.chars().filter(|c| !is_space(*c)).collect::<Vec<char>>();
    let [theirs, ours] = [reference, text].map(characters);
    let mut counts: Vec<Counts> =
        (1..=CHARACTERS).map(|order| ngrams(&theirs, &ours, order)).collect();
    let [theirs, ours] = [reference, text].map(off_punctuation);
    counts.extend((1..=word_order).map(|order| ngrams(&theirs, &ours, order)));
    counts
}

fn ngrams<T: Eq + std::hash::Hash>(reference: &[T], text: &[T], order: usize) -> Counts {
    let [theirs, ours] = [reference, text].map(|each| counted(each.windows(order)));
    let [total, of_text] = [&theirs, &ours].map(|counts| counts.values().sum());
    // If a reference has no n-grams of an order, those of the text are not counted.
    [if theirs.is_empty() { 0 } else { of_text }, total, common(&ours, &theirs)]
}

fn plus(mut left: Vec<Counts>, right: Vec<Counts>) -> Vec<Counts> {
    for (left, right) in left.iter_mut().zip(right) {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    }
    left
}

/// Orders that lack n-grams on one side are left out of the means.
fn score(counts: &[Counts]) -> f64 {
    let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
    for &[ours, theirs, matches] in counts {
        if ours > 0 && theirs > 0 {
            precision += matches as f64 / ours as f64;
            recall += matches as f64 / theirs as f64;
            orders += 1.0;
        }
    }
    if precision + recall == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (precision / orders, recall / orders);
    (1.0 + BETA * BETA) * precision * recall / (BETA * BETA * precision + recall)
}
