//! MATTR, the moving-average type-token ratio (Covington and `McFall`, 2010).

use super::statistic::Statistic;
use crate::Error;
use crate::ngrams::{NgramIndex, Windows};

/// The default window.
pub const MATTR_WINDOW: usize = 50;

/// MATTR: the share of distinct tokens in every window of this many tokens, averaged over the
/// windows of each text and then over the texts. A text shorter than the window is a single window;
/// empty texts are left out.
///
/// For a single text it equals `mattr` of the Python packages `lexical-diversity` and, if the text
/// is long enough, `lexicalrichness`.
///
/// ```
/// let texts = [vec![1, 1, 2], vec![3], vec![]];
/// assert_eq!(f2_metrics::mattr(&texts, 2)?, (0.75 + 1.0) / 2.0);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn mattr<T: AsRef<[u32]>>(texts: &[T], window: usize) -> Result<f64, Error> {
    let index = NgramIndex::of_texts(texts, 1)?;
    mean(&index, window.max(1)).of_all(texts.len(), Error::NoTokens("texts"))
}

pub(crate) fn mean(index: &NgramIndex, window: usize) -> Statistic {
    let mut inside = vec![0_u32; index.distinct(1)];
    let mut of_text = |text: usize| {
        let tokens = index.ngrams(1, text, Windows::Inner);
        let share = of_tokens(tokens, window, &mut inside);
        tokens.iter().for_each(|token| inside[*token as usize] = 0);
        share
    };
    Statistic::Mean((0..index.texts()).map(&mut of_text).collect())
}

/// MATTR of one text. `inside` counts the tokens in the window and is all zero at the beginning.
fn of_tokens(tokens: &[u32], window: usize, inside: &mut [u32]) -> Option<f64> {
    let window = window.min(tokens.len());
    let (mut types, mut sum) = (0_u32, 0_u64);
    for (place, token) in tokens.iter().enumerate() {
        if let Some(left) = place.checked_sub(window) {
            let count = &mut inside[tokens[left] as usize];
            *count -= 1;
            types -= u32::from(*count == 0);
        }
        let count = &mut inside[*token as usize];
        types += u32::from(*count == 0);
        *count += 1;
        if place + 1 >= window {
            sum += u64::from(types);
        }
    }
    let windows = tokens.len() + 1 - window;
    (window > 0).then(|| sum as f64 / window as f64 / windows as f64)
}
