//! Rep: texts that end in a loop.

use rayon::prelude::*;

use crate::Error;

/// Longer phrases are not looked for.
const LONGEST_PHRASE: usize = 100;
/// A phrase this long, said twice, is a loop.
const PHRASE: usize = 3;
/// Shorter phrases are a loop only when said more often than this.
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
/// Of every phrase length up to 100, the copies of the last phrase that stand back to back at
/// the end are counted; the length with most copies is taken, the smallest of several. It is a
/// loop if there are two copies or more and the phrase has three tokens or more, or more than
/// fifty copies.
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

/// How often the last `phrase` tokens stand back to back at the end: a text repeats with a
/// period as long as tokens equal the ones a period before.
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
