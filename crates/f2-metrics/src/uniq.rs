//! Uniq: the number of distinct tokens.

use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// Uniq: the number of distinct tokens in a set of texts. The same in both conventions.
///
/// ```
/// assert_eq!(f2_metrics::uniq(&[vec![1, 2], vec![2, 9]])?, 3);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn uniq<T: AsRef<[u32]>>(texts: &[T]) -> Result<usize, Error> {
    let index = NgramIndex::new(texts.iter().map(AsRef::as_ref), 1)?;
    Ok(used(&index.counts(1, 0..texts.len(), &vec![1; texts.len()], Windows::Inner)))
}

/// The number of non-zero counts.
pub(crate) fn used(counts: &[u32]) -> usize {
    counts.iter().filter(|&&count| count > 0).count()
}
