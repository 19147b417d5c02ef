//! BLEU of texts against a set of references.

use rayon::prelude::*;

use crate::ngrams::{NgramIndex, Windows};
use crate::self_bleu::scores;
use crate::{BleuParts, Convention, Error};

/// BLEU-1 to BLEU-`max_order`: the mean BLEU of each hypothesis with all references.
///
/// As for Self-BLEU, matches are clipped by an n-gram's largest count in any one reference, the
/// closest reference length is taken, and the conventions differ if nothing matches.
///
/// ```
/// use f2_metrics::{Convention, bleu};
/// let references = [vec![1, 2, 3], vec![4, 5, 6, 7]];
/// let scores = bleu(&references, &[vec![1, 2, 9]], 2, Convention::Textbook)?;
/// assert!((scores[0] - 2.0 / 3.0).abs() < 1e-15);
/// assert!((scores[1] - (2.0 / 3.0 * 1.0 / 2.0_f64).sqrt()).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn bleu<R: AsRef<[u32]>, H: AsRef<[u32]>>(
    references: &[R],
    hypotheses: &[H],
    max_order: usize,
    convention: Convention,
) -> Result<Vec<f64>, Error> {
    let parts = bleu_parts(references, hypotheses, max_order)?;
    let scores = scores(&parts, max_order, convention);
    Ok(scores.iter().map(|each| each.iter().sum::<f64>() / hypotheses.len() as f64).collect())
}

/// The parts of each hypothesis's BLEU, for custom smoothing.
pub fn bleu_parts<R: AsRef<[u32]>, H: AsRef<[u32]>>(
    references: &[R],
    hypotheses: &[H],
    max_order: usize,
) -> Result<Vec<BleuParts>, Error> {
    if hypotheses.is_empty() {
        return Err(Error::NoTexts);
    }
    if references.is_empty() {
        return Err(Error::NoReferences);
    }
    let texts = references.iter().map(AsRef::as_ref).chain(hypotheses.iter().map(AsRef::as_ref));
    let index = NgramIndex::new(texts, max_order)?;
    let (border, count) = (references.len(), hypotheses.len());
    let matches: Vec<Vec<u32>> = (1..=max_order)
        .into_par_iter()
        .map(|order| matches(&index, order, border, count))
        .collect();
    let mut lengths: Vec<usize> = (0..border).map(|text| index.length(text)).collect();
    lengths.sort_unstable();
    let parts = (0..count).map(|text| {
        let length = index.length(border + text);
        BleuParts {
            matches: matches.iter().map(|order| order[text]).collect(),
            length,
            closest_length: closest(&lengths, length),
        }
    });
    Ok(parts.collect())
}

/// Matching n-grams of one order in every hypothesis. The k-th occurrence of an n-gram matches if
/// some reference has it k times.
fn matches(index: &NgramIndex, order: usize, border: usize, hypotheses: usize) -> Vec<u32> {
    let ngrams = |text| index.ngrams(order, text, Windows::Inner);
    let mut most = vec![0; index.distinct(order)];
    // For each n-gram, the text it was last seen in and its count there so far.
    let mut seen = vec![(usize::MAX, 0_u32); index.distinct(order)];
    let mut see = |text: usize, ngram: usize| {
        let (reading, count) = &mut seen[ngram];
        *count = if *reading == text { *count + 1 } else { 1 };
        *reading = text;
        *count
    };
    for text in 0..border {
        for &ngram in ngrams(text) {
            let count = see(text, ngram as usize);
            most[ngram as usize] = count.max(most[ngram as usize]);
        }
    }
    let hypotheses = border..border + hypotheses;
    let matching = hypotheses.map(|text| {
        let matches = |ngram: &&u32| see(text, **ngram as usize) <= most[**ngram as usize];
        ngrams(text).iter().filter(matches).count() as u32
    });
    matching.collect()
}

/// The entry of `sorted` closest to `length`; of two equally close, the shorter.
fn closest(sorted: &[usize], length: usize) -> usize {
    let first = sorted.partition_point(|&other| other < length);
    let longer = sorted.get(first).copied();
    let shorter = first.checked_sub(1).map(|before| sorted[before]);
    let both = [shorter, longer].into_iter().flatten();
    both.min_by_key(|&other| (other.abs_diff(length), other)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::self_bleu_parts;

    proptest! {
        /// Self-BLEU is the BLEU of each text against the others.
        #[test]
        fn of_each_text_against_the_others_is_self_bleu(
            texts in prop::collection::vec(prop::collection::vec(0_u32..5, 0..12), 2..7),
        ) {
            let together = self_bleu_parts(&texts, 3).unwrap();
            for (number, expected) in together.iter().enumerate() {
                let mut others = texts.clone();
                let own = others.remove(number);
                prop_assert_eq!(&bleu_parts(&others, &[own], 3).unwrap()[0], expected);
            }
        }
    }

    #[test]
    fn both_sides_need_texts() {
        let (none, one): (&[Vec<u32>], _) = (&[], [vec![1]]);
        assert_eq!(bleu(none, &one, 1, Convention::Paper), Err(Error::NoReferences));
        assert_eq!(bleu(&one, none, 1, Convention::Paper), Err(Error::NoTexts));
    }
}
