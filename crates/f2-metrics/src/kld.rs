//! KL divergence between the unigrams of two sets of texts.

use crate::convention::MISSING;
use crate::ngrams::{NgramIndex, Windows};
use crate::{Convention, Error};

/// KL divergence KL(human ‖ model) of unigrams, in nats.
///
/// Both conventions use the probability 1e-10 for a token that the model never generated, so that
/// each adds `p·ln(p / 1e-10)`: this floor dominates the value. The paper's convention also uses it
/// for tokens that the references lack, which changes the tenth digit. Nothing is renormalised.
///
/// ```
/// use f2_metrics::{Convention, kl_divergence};
/// let human = [[1, 1, 1, 2]];
/// let model = [[1, 2]];
/// let expected = 0.75 * 1.5_f64.ln() + 0.25 * 0.5_f64.ln();
/// let kld = kl_divergence(&human, &model, Convention::Textbook)?;
/// assert!((kld - expected).abs() < 1e-15);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn kl_divergence<R: AsRef<[u32]>, H: AsRef<[u32]>>(
    references: &[R],
    hypotheses: &[H],
    convention: Convention,
) -> Result<f64, Error> {
    let texts = references.iter().map(AsRef::as_ref).chain(hypotheses.iter().map(AsRef::as_ref));
    let index = NgramIndex::new(texts, 1)?;
    let end = references.len() + hypotheses.len();
    let weights = vec![1; end];
    let human = index.counts(1, 0..references.len(), &weights, Windows::Inner);
    let model = index.counts(1, references.len()..end, &weights, Windows::Inner);
    divergence(&human, &model, convention)
}

/// KL divergence of two lists of counts over the same tokens.
pub(crate) fn divergence(
    human: &[u32],
    model: &[u32],
    convention: Convention,
) -> Result<f64, Error> {
    let human_total = total(human).ok_or(Error::NoTokens("references"))?;
    let model_total = total(model).ok_or(Error::NoTokens("hypotheses"))?;
    let term = |(&human, &model): (&u32, &u32)| {
        let p = match (human, model, convention) {
            (0, 0, _) | (0, _, Convention::Textbook) => return 0.0,
            (0, _, Convention::Paper) => MISSING,
            _ => f64::from(human) / human_total,
        };
        let q = if model == 0 { MISSING } else { f64::from(model) / model_total };
        p * (p / q).ln()
    };
    Ok(human.iter().zip(model).map(term).sum())
}

fn total(counts: &[u32]) -> Option<f64> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    (total > 0).then_some(total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_without_tokens_has_no_distribution() {
        let none: [Vec<u32>; 1] = [vec![]];
        let some = [vec![1]];
        let error = kl_divergence(&some, &none, Convention::Paper).unwrap_err();
        assert_eq!(error, Error::NoTokens("hypotheses"));
        let error = kl_divergence(&none, &some, Convention::Paper).unwrap_err();
        assert_eq!(error, Error::NoTokens("references"));
    }
}
