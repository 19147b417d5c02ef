//! Coherence: how close a continuation is to its prompt (Su et al., 2022).

use super::Features;
use super::statistic::Statistic;
use crate::Error;

/// Coherence: the mean cosine similarity between the features of each prompt and those of its
/// continuation. Zero vectors, those of empty texts, are left out.
///
/// ```
/// use f2_metrics::{Features, coherence};
/// let prompts = Features::new(2, vec![1.0, 0.0, 0.0, 2.0]).unwrap();
/// let texts = Features::new(2, vec![3.0, 4.0, 0.0, 0.0]).unwrap();
/// assert!((coherence(&prompts, &texts)? - 0.6).abs() < 1e-12);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn coherence(prompts: &Features, texts: &Features) -> Result<f64, Error> {
    mean(prompts, texts)?.of_all(texts.count(), Error::NoTokens("texts"))
}

pub(crate) fn mean(prompts: &Features, texts: &Features) -> Result<Statistic, Error> {
    if prompts.width() != texts.width() {
        return Err(Error::Widths([prompts.width(), texts.width()]));
    }
    if prompts.count() != texts.count() {
        return Err(Error::Prompts { prompts: prompts.count(), texts: texts.count() });
    }
    let cosines = prompts.points().zip(texts.points()).map(|(one, other)| cosine(one, other));
    Ok(Statistic::Mean(cosines.collect()))
}

fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let norms = (dot(one, one) * dot(other, other)).sqrt();
    (norms > 0.0).then(|| dot(one, other) / norms)
}
