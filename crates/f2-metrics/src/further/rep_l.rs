//! rep/l: tokens that occurred shortly before (Welleck et al., 2020).

use super::statistic::Statistic;
use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// The authors' windows l, except 512, which is longer than the texts of the paper's protocol.
pub const REP_WINDOWS: [usize; 3] = [16, 32, 128];

/// rep/l: the share of all tokens that are among the `window` tokens before them in their text.
///
/// The authors apply it to a model's most likely next tokens given human text. For greedily
/// generated text it is the same quantity, with the text itself as the context.
///
/// ```
/// let texts = [vec![1, 2, 1, 3, 3], vec![2]];
/// assert_eq!(f2_metrics::rep_l(&texts, 1)?, 1.0 / 6.0);
/// assert_eq!(f2_metrics::rep_l(&texts, 2)?, 2.0 / 6.0);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn rep_l<T: AsRef<[u32]>>(texts: &[T], window: usize) -> Result<f64, Error> {
    let index = NgramIndex::of_texts(texts, 1)?;
    share(&distances(&index), window).of_all(texts.len(), Error::NoTokens("texts"))
}

/// The distance of each token to its previous occurrence in the text; 0 if there is none.
pub(crate) fn distances(index: &NgramIndex) -> Vec<Vec<u32>> {
    // The text and the position, from 1, at which each token was last seen.
    let mut last = vec![(u32::MAX, 0_u32); index.distinct(1)];
    let of_text = |text: usize| {
        let tokens = index.ngrams(1, text, Windows::Inner);
        let distance = |(place, token): (u32, &u32)| {
            let (seen_in, before) =
                std::mem::replace(&mut last[*token as usize], (text as u32, place));
            if seen_in == text as u32 { place - before } else { 0 }
        };
        (1..).zip(tokens).map(distance).collect()
    };
    (0..index.texts()).map(of_text).collect()
}

/// rep/l from the distances of each text.
pub(crate) fn share(distances: &[Vec<u32>], window: usize) -> Statistic {
    let parts = |text: &Vec<u32>| {
        let near = |distance: &&u32| (1..=window).contains(&(**distance as usize));
        [text.iter().filter(near).count() as f64, text.len() as f64]
    };
    Statistic::Ratios(vec![distances.iter().map(parts).collect()])
}
