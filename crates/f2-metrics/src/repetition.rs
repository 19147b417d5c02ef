//! Rep: texts that end in a loop.

use rayon::prelude::*;

use crate::Error;

/// The longest phrase considered.
const LONGEST_PHRASE: usize = 100;
/// A phrase of at least this length is a loop if it occurs twice.
const PHRASE: usize = 3;
/// Shorter phrases are a loop only with more copies than this.
const SHORT_PHRASE_COPIES: usize = 50;

/// Rep: the share of texts that end in a loop. The same in both conventions.
///
/// ```
/// use f2_metrics::repetition;
/// let texts = [vec![7, 1, 2, 3, 1, 2, 3], vec![1, 2, 3, 4, 5, 6, 7]];
/// assert_eq!(repetition(&texts)?, 0.5);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn repetition<T: AsRef<[u32]> + Sync>(texts: &[T]) -> Result<f64, Error> {
    if texts.is_empty() {
        return Err(Error::NoTexts);
    }
    let loops = texts.par_iter().filter(|text| ends_in_loop(text.as_ref())).count();
    Ok(loops as f64 / texts.len() as f64)
}

/// Whether a text ends in a loop (Holtzman et al., 2019).
///
/// For every phrase length up to 100, the consecutive copies of the last phrase at the end are
/// counted. The length with the most copies is taken, or the smallest such length. The text ends
/// in a loop if there are at least two copies, and either the phrase has at least three tokens or
/// there are more than fifty copies.
///
/// ```
/// use f2_metrics::ends_in_loop;
/// assert!(ends_in_loop(&[7, 1, 2, 3, 1, 2, 3]));
/// assert!(!ends_in_loop(&[7, 1, 2, 1, 2, 1, 2]));
/// ```
pub fn ends_in_loop(text: &[u32]) -> bool {
    let (mut phrase, mut most) = (0, 1);
    for length in 1..=LONGEST_PHRASE.min(text.len() / 2) {
        let copies = copies_at_end(text, length);
        if copies > most {
            (phrase, most) = (length, copies);
        }
    }
    most > 1 && (phrase >= PHRASE || most > SHORT_PHRASE_COPIES)
}

/// Consecutive copies of the last `phrase` tokens at the end: a text repeats with this period as
/// long as each token equals the one a period before it.
fn copies_at_end(text: &[u32], phrase: usize) -> usize {
    let later = text[phrase..].iter().rev();
    let earlier = text[..text.len() - phrase].iter().rev();
    1 + later.zip(earlier).take_while(|(a, b)| a == b).count() / phrase
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_short_texts_do_not_loop() {
        assert!(!ends_in_loop(&[]));
        assert!(!ends_in_loop(&[1]));
        assert!(!ends_in_loop(&[1, 1]));
    }

    #[test]
    fn the_phrase_with_most_copies_decides() {
        // "6 6" ends the text as often as "3 4 6 6", and the shorter phrase is taken.
        assert!(!ends_in_loop(&[9, 3, 4, 6, 6, 3, 4, 6, 6]));
        assert!(ends_in_loop(&[9, 3, 4, 6, 7, 3, 4, 6, 7]));
    }
}
