//! ROUGE-1, ROUGE-2 and ROUGE-L, as rouge-score computes them without stemming.

use rayon::prelude::*;
use serde::Serialize;

use super::words::alphanumeric;
use super::{check, common, counted};
use crate::Error;

/// Mean F-scores over texts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rouge {
    /// Of words.
    pub rouge_1: f64,
    /// Of word bigrams.
    pub rouge_2: f64,
    /// Of the longest common subsequence.
    pub rouge_l: f64,
}

/// ROUGE of texts, each with its own reference: the mean over texts of the F-scores of words, word
/// bigrams, and the longest common subsequence. Words are runs of a–z and 0–9 after lower-casing,
/// so that other scripts have none.
///
/// ```
/// use f2_metrics::rouge;
/// let scores = rouge(&["The cat sat."], &["the cat, sitting"])?;
/// assert!((scores.rouge_1 - 2.0 / 3.0).abs() < 1e-15);
/// assert!((scores.rouge_2 - 1.0 / 2.0).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn rouge<R: AsRef<str> + Sync, H: AsRef<str> + Sync>(
    references: &[R],
    texts: &[H],
) -> Result<Rouge, Error> {
    check(references.len(), texts.len())?;
    let pairs = references.par_iter().zip(texts);
    // Collected first, so that the sum is in a fixed order and reproducible.
    let each: Vec<[f64; 3]> =
        pairs.map(|(reference, text)| of(reference.as_ref(), text.as_ref())).collect();
    let mean = |score: usize| each.iter().map(|all| all[score]).sum::<f64>() / each.len() as f64;
    Ok(Rouge { rouge_1: mean(0), rouge_2: mean(1), rouge_l: mean(2) })
}

fn of(reference: &str, text: &str) -> [f64; 3] {
    let [reference, text] = [reference, text].map(alphanumeric);
    let ngrams = |order: usize| {
        let [theirs, ours] = [&reference, &text].map(|words| counted(words.windows(order)));
        let [of_theirs, of_ours] = [&theirs, &ours].map(|counts| counts.values().sum());
        f_score(common(&ours, &theirs), of_ours, of_theirs)
    };
    let longest = common_subsequence(&reference, &text);
    [ngrams(1), ngrams(2), f_score(longest, text.len() as u64, reference.len() as u64)]
}

fn f_score(matches: u64, ours: u64, theirs: u64) -> f64 {
    if matches == 0 {
        return 0.0;
    }
    let (precision, recall) = (matches as f64 / ours as f64, matches as f64 / theirs as f64);
    2.0 * precision * recall / (precision + recall)
}

/// The length of the longest common subsequence, computed row by row.
fn common_subsequence(left: &[String], right: &[String]) -> u64 {
    let mut row = vec![0; right.len() + 1];
    for one in left {
        let mut diagonal = 0;
        for (place, other) in right.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if one == other { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row[right.len()]
}
