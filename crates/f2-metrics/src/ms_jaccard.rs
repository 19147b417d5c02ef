//! MS-Jaccard: the overlap of the n-grams of two sets of texts.

use std::ops::Range;

use rayon::prelude::*;

use crate::convention::MISSING;
use crate::ngrams::{NgramIndex, Windows};
use crate::{Convention, Error};

/// MS-Jaccard-1 to MS-Jaccard-`max_order`: the overlap of the n-grams of two sets of texts.
///
/// One order's similarity is `Σ min(p, q) / Σ max(p, q)` over all n-grams; MS-Jaccard-n is the
/// geometric mean of the orders 1 to n. The conventions differ in `p` and `q`:
///
/// * textbook (Alihosseini et al., 2019): occurrences per text;
/// * paper: relative frequency among all n-grams, 1e-10 if missing. Each text is padded with n−1
///   symbols on either side and read 2(n−1) positions further, which adds n−1 slices of pads, of
///   the lengths 1…n−1, and n−1 empty slices.
///
/// ```
/// use f2_metrics::{Convention, ms_jaccard};
/// let human = [[1, 2, 3, 4]];
/// let model = [[1, 2, 3, 5]];
/// let scores = ms_jaccard(&human, &model, 2, Convention::Textbook)?;
/// assert!((scores[0] - 3.0 / 5.0).abs() < 1e-15);
/// assert!((scores[1] - (3.0 / 5.0 * 2.0 / 4.0_f64).sqrt()).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn ms_jaccard<R: AsRef<[u32]>, H: AsRef<[u32]>>(
    references: &[R],
    hypotheses: &[H],
    max_order: usize,
    convention: Convention,
) -> Result<Vec<f64>, Error> {
    let texts = references.iter().map(AsRef::as_ref).chain(hypotheses.iter().map(AsRef::as_ref));
    let index = NgramIndex::new(texts, max_order)?;
    let (border, end) = (references.len(), references.len() + hypotheses.len());
    let weights = vec![1; end];
    let human = Side { texts: 0..border, weights: &weights[..border] };
    let model = Side { texts: border..end, weights: &weights[border..] };
    let jaccards: Vec<_> = (1..=max_order)
        .into_par_iter()
        .map(|order| jaccard(&index, order, &human, &model, convention))
        .collect();
    geometric_means(jaccards).into_iter().collect()
}

/// One of the two sets of texts: their range in the index, and their weights.
#[derive(Clone, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) texts: Range<usize>,
    pub(crate) weights: &'a [u32],
}

impl Side<'_> {
    fn len(&self) -> u64 {
        self.weights.iter().map(|&weight| u64::from(weight)).sum()
    }
}

/// The running geometric means of the similarities of the orders 1, 2, …; all errors from the
/// first order that is not defined.
pub(crate) fn geometric_means(jaccards: Vec<Result<f64, Error>>) -> Vec<Result<f64, Error>> {
    let mut logarithms = Ok(0.0);
    let means = (1..).zip(jaccards).map(|(order, jaccard)| {
        logarithms = logarithms.clone().and_then(|sum| Ok(sum + jaccard?.ln()));
        Ok((logarithms.clone()? / f64::from(order)).exp())
    });
    means.collect()
}

/// The similarity of one order.
pub(crate) fn jaccard(
    index: &NgramIndex,
    order: usize,
    human: &Side<'_>,
    model: &Side<'_>,
    convention: Convention,
) -> Result<f64, Error> {
    let windows = match convention {
        Convention::Paper => Windows::Padded,
        Convention::Textbook => Windows::Inner,
    };
    let humans = index.counts(order, human.texts.clone(), human.weights, windows);
    let models = index.counts(order, model.texts.clone(), model.weights, windows);
    let defined = |value: f64| if value.is_nan() { Err(Error::NoNgrams(order)) } else { Ok(value) };
    match convention {
        Convention::Textbook => {
            let overlap = Overlap::of(&humans, &models, human.len(), model.len());
            defined(overlap.shared as f64 / overlap.joint as f64)
        }
        Convention::Paper => {
            let beyond = (human.len(), model.len(), order as u64 - 1);
            defined(jaccard_with_slices(&humans, &models, beyond))
        }
    }
}

/// The paper's similarity of one order. `beyond`, `(human texts, model texts, n - 1)`, gives the
/// number of slices beyond the texts' ends, which are added to the counts.
fn jaccard_with_slices(humans: &[u32], models: &[u32], beyond: (u64, u64, u64)) -> f64 {
    let (human_texts, model_texts, pads) = beyond;
    let total = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let human_total = total(humans) + 2 * pads * human_texts;
    let model_total = total(models) + 2 * pads * model_texts;
    let mut overlap = Overlap::of(humans, models, human_total, model_total);
    for _ in 0..pads {
        overlap.add(human_texts, model_texts, human_total, model_total);
    }
    overlap.add(pads * human_texts, pads * model_texts, human_total, model_total);
    let unit = human_total as f64 * model_total as f64;
    (overlap.shared as f64 + MISSING * overlap.one_sided as f64 * unit) / overlap.joint as f64
}

/// `Σ min` and `Σ max` of frequencies, both times the product of the two denominators: integers,
/// so that the order of summation does not matter.
#[derive(Default)]
struct Overlap {
    shared: u128,
    joint: u128,
    /// N-grams that occur on one side only.
    one_sided: u64,
}

impl Overlap {
    fn of(humans: &[u32], models: &[u32], human_total: u64, model_total: u64) -> Self {
        let mut overlap = Self::default();
        for (&human, &model) in humans.iter().zip(models) {
            overlap.add(human.into(), model.into(), human_total, model_total);
        }
        overlap
    }

    fn add(&mut self, human: u64, model: u64, human_total: u64, model_total: u64) {
        let human_share = u128::from(human) * u128::from(model_total);
        let model_share = u128::from(model) * u128::from(human_total);
        self.shared += human_share.min(model_share);
        self.joint += human_share.max(model_share);
        self.one_sided += u64::from((human == 0) != (model == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_too_short_for_an_order_leave_it_undefined_in_the_textbook_only() {
        let (human, model) = ([[1, 2]], [[1, 3]]);
        let textbook = ms_jaccard(&human, &model, 3, Convention::Textbook);
        assert_eq!(textbook, Err(Error::NoNgrams(3)));
        assert_eq!(ms_jaccard(&human, &model, 3, Convention::Paper).unwrap().len(), 3);
    }

    #[test]
    fn a_set_equals_itself() {
        let texts = [vec![1, 2, 3, 4, 1, 2], vec![], vec![4]];
        for convention in [Convention::Paper, Convention::Textbook] {
            assert_eq!(ms_jaccard(&texts, &texts, 3, convention).unwrap(), [1.0; 3]);
        }
    }
}
