//! The Zipf coefficient (Holtzman et al., 2020).

use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// How many of the most frequent tokens the line is fitted to, as in the authors' program.
pub const ZIPF_RANKS: usize = 5000;

/// The exponent s of Zipf's law, count ≈ c / rankˢ: the negative slope of ln(count) over ln(rank),
/// fitted by least squares to the `ranks` most frequent tokens. Human text is close to 1.
///
/// ```
/// let texts = [vec![1; 12], vec![2; 6], vec![3; 4], vec![4; 3]];
/// assert!((f2_metrics::zipf_coefficient(&texts, 5000)? - 1.0).abs() < 1e-12);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn zipf_coefficient<T: AsRef<[u32]>>(texts: &[T], ranks: usize) -> Result<f64, Error> {
    coefficient(&NgramIndex::of_texts(texts, 1)?, ranks)
}

pub(crate) fn coefficient(index: &NgramIndex, ranks: usize) -> Result<f64, Error> {
    let all = 0..index.texts();
    let mut counts = index.counts(1, all.clone(), &vec![1; all.len()], Windows::Inner);
    counts.retain(|count| *count > 0);
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts.truncate(ranks);
    if counts.len() < 2 {
        return Err(Error::OneToken);
    }
    let points = || (1_u32..).zip(&counts).map(|(rank, count)| [rank, *count]);
    let points = || points().map(|point| point.map(|number| f64::from(number).ln()));
    let n = counts.len() as f64;
    let [x_mean, y_mean] = [0, 1].map(|side| points().map(|point| point[side]).sum::<f64>() / n);
    let covariance: f64 = points().map(|[x, y]| (x - x_mean) * (y - y_mean)).sum();
    let variance: f64 = points().map(|[x, _]| (x - x_mean) * (x - x_mean)).sum();
    Ok(-covariance / variance)
}
