//! Novelty: how much of the generated texts does not occur in the training text.
//!
//! The generated texts are small and the training text is large. The index is therefore built of
//! the generated texts, and the training text is passed through it once: time is linear in both,
//! and memory depends only on the generated texts.

use std::ops::Range;

use rayon::prelude::*;

use super::automaton::{Reading, SuffixAutomaton};
use super::statistic::Statistic;
use crate::Error;

/// The n-gram lengths for which novelty is reported.
pub const NOVELTY_ORDERS: [usize; 3] = [2, 4, 8];

/// Training tokens read by one task.
const PART: u64 = 1 << 20;
/// Training tokens in memory at a time, per task.
const BUFFER: u64 = 1 << 15;

/// The tokens a model was trained on, with the same ids as the texts to score.
pub trait TrainingTokens: Sync {
    /// How many there are.
    fn tokens(&self) -> u64;
    /// Copies a range of them.
    fn copy(&self, range: Range<u64>, out: &mut [u32]);
}

impl TrainingTokens for [u32] {
    fn tokens(&self) -> u64 {
        self.len() as u64
    }

    fn copy(&self, range: Range<u64>, out: &mut [u32]) {
        out.copy_from_slice(&self[range.start as usize..range.end as usize]);
    }
}

/// For every token of every text, the length of the longest token sequence ending with it that
/// occurs in the training text.
///
/// `watch` is called from several threads with the number of training tokens just read. Returns
/// `None` if it returns `false`, to stop.
///
/// ```
/// let training = [1, 2, 3, 4, 5];
/// let texts = [vec![2, 3, 4, 1, 2], vec![9]];
/// let lengths = f2_metrics::training_matches(&texts, &training[..], &|_| true);
/// assert_eq!(lengths.unwrap(), [vec![1, 2, 3, 1, 2], vec![0]]);
/// ```
pub fn training_matches<T: AsRef<[u32]>>(
    texts: &[T],
    training: &(impl TrainingTokens + ?Sized),
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Option<Vec<Vec<u32>>> {
    let automaton = SuffixAutomaton::new(texts.iter().map(AsRef::as_ref));
    let parts = training.tokens().div_ceil(PART);
    let matched = (0..parts)
        .into_par_iter()
        .try_fold(
            || vec![0_u32; automaton.states()],
            |mut matched, part| {
                read_part(&automaton, training, part * PART, &mut matched, watch).map(|()| matched)
            },
        )
        .try_reduce(
            || vec![0_u32; automaton.states()],
            |mut one, other| {
                one.iter_mut().zip(other).for_each(|(one, other)| *one = other.max(*one));
                Some(one)
            },
        )?;
    let longest = automaton.longest_suffixes(matched);
    let of_text = |text: &T| automaton.walk(text.as_ref()).map(|at| longest[at as usize]).collect();
    Some(texts.iter().map(of_text).collect())
}

/// Reads the training tokens of one part, and beyond its end while a match that began in it
/// continues. Records the longest match that ends in each state.
fn read_part(
    automaton: &SuffixAutomaton,
    training: &(impl TrainingTokens + ?Sized),
    start: u64,
    matched: &mut [u32],
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Option<()> {
    let (all, end) = (training.tokens(), (start + PART).min(training.tokens()));
    let mut at = Reading::default();
    let (mut place, mut buffer) = (start, Vec::new());
    while place < all && place - u64::from(at.length) < end {
        let next = if place < end { end } else { all }.min(place + BUFFER);
        buffer.resize((next - place) as usize, 0);
        training.copy(place..next, &mut buffer);
        let own = next.min(end).saturating_sub(place);
        for &token in &buffer {
            at = automaton.read(at, token);
            let longest = &mut matched[at.state as usize];
            *longest = at.length.max(*longest);
            place += 1;
            if place - u64::from(at.length) >= end {
                break;
            }
        }
        if !watch(own) {
            return None;
        }
    }
    Some(())
}

/// The share of n-grams that do not occur in the training text, from the texts' matches in it.
///
/// ```
/// let matches = [vec![1, 2, 3, 1, 2]];
/// assert_eq!(f2_metrics::novelty(&matches, 2)?, 0.25);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn novelty(matches: &[Vec<u32>], order: usize) -> Result<f64, Error> {
    let missing = Error::NoNgramsIn { metric: "Novelty", order };
    share(matches, order).of_all(matches.len(), missing)
}

/// The mean length of each text's longest token sequence that also occurs in the training text.
/// Empty texts are left out.
pub fn longest_match(matches: &[Vec<u32>]) -> Result<f64, Error> {
    longest(matches).of_all(matches.len(), Error::NoTokens("texts"))
}

pub(crate) fn share(matches: &[Vec<u32>], order: usize) -> Statistic {
    let parts = |text: &Vec<u32>| {
        let ends = text.get(order - 1..).unwrap_or_default();
        let new = ends.iter().filter(|length| (**length as usize) < order).count();
        [new as f64, ends.len() as f64]
    };
    Statistic::Ratios(vec![matches.iter().map(parts).collect()])
}

pub(crate) fn longest(matches: &[Vec<u32>]) -> Statistic {
    let longest = |text: &Vec<u32>| text.iter().max().map(|length| f64::from(*length));
    Statistic::Mean(matches.iter().map(longest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_across_the_border_of_two_parts_is_found() {
        let training: Vec<u32> =
            (0..PART as u32 + 50).map(|place| place.wrapping_mul(2_654_435_761) >> 8).collect();
        let text = training[PART as usize - 40..PART as usize + 30].to_vec();
        let matches = training_matches(&[text], &training[..], &|_| true).unwrap();
        assert!(matches[0].iter().copied().eq(1..=70));
    }

    #[test]
    fn it_stops_when_told_to() {
        assert_eq!(training_matches(&[[1]], &[1_u32, 2][..], &|_| false), None);
    }

    #[test]
    fn nothing_was_trained_on_and_everything_is_new() {
        let matches = training_matches(&[vec![1, 2, 3]], &[][..], &|_| true).unwrap();
        assert_eq!((novelty(&matches, 2), longest_match(&matches)), (Ok(1.0), Ok(0.0)));
        assert!(novelty(&matches, 4).is_err());
    }
}
