//! DRY, "don't repeat yourself": a penalty on the token that would continue a repetition, larger
//! the longer the repetition (known from text-generation-webui and llama.cpp; there is no paper).

use std::collections::BTreeMap;

use super::checks::{check_positive, require};
use crate::Error;

/// Larger penalties change nothing, and infinite ones would leave no token if all were penalised.
const LARGEST: f64 = 1e30;

/// The penalty on repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Dry {
    /// The penalty on continuing a repetition of the allowed length, in nats.
    pub multiplier: f64,
    /// The factor by which each further token of the repetition multiplies the penalty.
    pub base: f64,
    /// The length from which continuing a repetition is penalised.
    pub allowed_length: usize,
    /// The number of last tokens in which repetitions are looked for; 0 for the whole text.
    pub range: usize,
    /// Tokens that end a repetition and are never penalised, ascending.
    pub breakers: Vec<u32>,
}

impl Default for Dry {
    fn default() -> Self {
        Self { multiplier: 0.8, base: 1.75, allowed_length: 2, range: 0, breakers: Vec::new() }
    }
}

impl Dry {
    /// The default sequence breakers: tokens that contain one of these end a repetition.
    pub const USUAL_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { multiplier, base, allowed_length, range: _, breakers: _ } = self;
        check_positive("DRY multiplier", *multiplier)?;
        require("DRY base", base.is_finite() && *base >= 1.0, || {
            format!("{base} is not a number from 1 up")
        })?;
        require("DRY allowed length", *allowed_length >= 1, || {
            "0 is not a whole number from 1 up".to_owned()
        })
    }

    /// The tokens that would continue a repetition after `history`, and their penalties in nats.
    pub(super) fn penalties(&self, history: &[u32]) -> BTreeMap<u32, f64> {
        let seen = match self.range {
            0 => history,
            range => &history[history.len().saturating_sub(range)..],
        };
        let lengths = self.lengths(seen).into_iter();
        let penalised = lengths.filter(|(_, length)| *length >= self.allowed_length);
        penalised.map(|(id, length)| (id, self.penalty(length))).collect()
    }

    fn penalty(&self, length: usize) -> f64 {
        let further = (length - self.allowed_length) as f64;
        (self.multiplier * self.base.powf(further)).min(LARGEST)
    }

    /// For every token that followed an earlier occurrence of a suffix of the text: the length of
    /// the longest such suffix.
    fn lengths(&self, text: &[u32]) -> BTreeMap<u32, usize> {
        let is_breaker = |id: &u32| self.breakers.binary_search(id).is_ok();
        let backwards: Vec<u32> = text.iter().rev().copied().collect();
        let most = backwards.iter().position(is_breaker).unwrap_or(backwards.len());
        let mut lengths = BTreeMap::new();
        for (back, common) in common_beginnings(&backwards).into_iter().enumerate().skip(1) {
            let next = backwards[back - 1];
            let length = common.min(most);
            if length > 0 && !is_breaker(&next) {
                let longest = lengths.entry(next).or_insert(0);
                *longest = length.max(*longest);
            }
        }
        lengths
    }
}

/// For each place in a list, the length of the longest common prefix of the list and its tail from
/// there: the Z-algorithm, linear in the length.
fn common_beginnings(list: &[u32]) -> Vec<usize> {
    let mut common = vec![0; list.len()];
    // The known match that reaches farthest.
    let (mut start, mut end) = (0, 0);
    for place in 1..list.len() {
        let mut length = if place < end { common[place - start].min(end - place) } else { 0 };
        while place + length < list.len() && list[length] == list[place + length] {
            length += 1;
        }
        if place + length > end {
            (start, end) = (place, place + length);
        }
        common[place] = length;
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_repetition_counts_and_breakers_end_it() {
        let dry = Dry { multiplier: 1.0, base: 2.0, ..Dry::default() };
        let history = [1, 2, 3, 9, 2, 3, 8, 1, 2, 3];
        // After `1 2 3` came 9, after `2 3` came 8: three and two tokens.
        assert_eq!(dry.penalties(&history).into_iter().collect::<Vec<_>>(), [(8, 1.0), (9, 2.0)]);
        let broken = Dry { breakers: vec![1], ..dry.clone() };
        assert_eq!(broken.penalties(&history)[&9], 1.0);
        let ended = Dry { breakers: vec![3], ..dry.clone() };
        assert!(ended.penalties(&history).is_empty());
        let spared = Dry { breakers: vec![8, 9], ..dry.clone() };
        assert!(spared.penalties(&history).is_empty());
        let near = Dry { range: 7, ..dry.clone() };
        assert_eq!(near.penalties(&history).into_keys().collect::<Vec<_>>(), [8]);
        assert!(dry.penalties(&[]).is_empty());
    }

    #[test]
    fn endless_repetitions_have_a_finite_penalty() {
        assert_eq!(Dry::default().penalties(&[7; 2_000])[&7], LARGEST);
    }
}
