//! Input tokens, with the order in which their gradients are summed.

use crate::Error;
use crate::cuda::runtime::{Stream, Upload};

/// How often a token may occur and still be rare.
pub(super) const FEW: usize = 4;

/// A batch's tokens and their positions by token: `[ids | order | starts | counts | common]`, where
/// the counts are those of distinct tokens and of common ones.
#[derive(Debug)]
pub struct Tokens {
    words: Upload,
    positions: usize,
    /// Scratch for sorting: how often each id occurs.
    occurrences: Vec<u32>,
}

impl Tokens {
    pub(super) fn new(stream: &Stream, positions: usize) -> Result<Self, Error> {
        let words = Upload::new(stream, 3 * positions + 3 + most_common(positions))?;
        Ok(Self { words, positions, occurrences: Vec::new() })
    }

    pub(super) fn load(&mut self, ids: &[u32]) {
        let Self { words, positions, occurrences } = self;
        let positions = *positions;
        assert!(ids.len() <= positions, "{} tokens exceed the capacity of {positions}", ids.len());
        words.write(words.len(), |words| {
            let (to_ids, words) = words.split_at_mut(positions);
            let (order, words) = words.split_at_mut(positions);
            let (starts, words) = words.split_at_mut(positions + 1);
            let (counts, common) = words.split_at_mut(2);
            to_ids[..ids.len()].copy_from_slice(ids);
            let groups = sort(ids, occurrences, order, starts);
            counts[0] = groups as u32;
            counts[1] = list_common(&starts[..=groups], common) as u32;
        });
    }

    /// The most distinct tokens there can be.
    pub(super) fn capacity(&self) -> usize {
        self.positions
    }

    /// The most common tokens there can be.
    pub(super) fn common_capacity(&self) -> usize {
        most_common(self.positions)
    }

    pub(super) fn ids(&self) -> u64 {
        self.words.at(0)
    }

    pub(super) fn order(&self) -> u64 {
        self.words.at(self.positions)
    }

    pub(super) fn starts(&self) -> u64 {
        self.words.at(2 * self.positions)
    }

    pub(super) fn counts(&self) -> u64 {
        self.words.at(3 * self.positions + 1)
    }

    pub(super) fn common(&self) -> u64 {
        self.words.at(3 * self.positions + 3)
    }
}

/// The most common tokens that so many positions can have.
fn most_common(positions: usize) -> usize {
    positions / (FEW + 1)
}

/// Lists the groups of more than [`FEW`] positions; returns how many there are.
fn list_common(starts: &[u32], common: &mut [u32]) -> usize {
    let mut count = 0;
    for (group, bounds) in starts.windows(2).enumerate() {
        if (bounds[1] - bounds[0]) as usize > FEW {
            common[count] = group as u32;
            count += 1;
        }
    }
    count
}

/// A counting sort of positions by token; `starts` gets where each distinct token's positions
/// begin, and the end of the last. Returns how many distinct tokens there are.
fn sort(ids: &[u32], counts: &mut Vec<u32>, order: &mut [u32], starts: &mut [u32]) -> usize {
    let largest = ids.iter().max().map_or(0, |&id| id as usize + 1);
    counts.clear();
    counts.resize(largest, 0);
    for &id in ids {
        counts[id as usize] += 1;
    }
    let (mut groups, mut next) = (0, 0);
    for count in counts.iter_mut().filter(|count| **count > 0) {
        starts[groups] = next;
        groups += 1;
        let start = next;
        next += *count;
        *count = start;
    }
    starts[groups] = next;
    for (position, &id) in ids.iter().enumerate() {
        let place = &mut counts[id as usize];
        order[*place as usize] = position as u32;
        *place += 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_grouped_by_token_in_order() {
        let (mut order, mut starts) = ([9; 6], [9; 7]);
        let groups = sort(&[7, 3, 7, 0, 3, 7], &mut Vec::new(), &mut order, &mut starts);
        assert_eq!(groups, 3);
        assert_eq!(order, [3, 1, 4, 0, 2, 5]);
        assert_eq!(starts[..4], [0, 1, 3, 6]);
        assert_eq!(list_common(&starts[..4], &mut []), 0);
        let mut common = [9; 2];
        assert_eq!(list_common(&[0, 40, 43, 62], &mut common), 2);
        assert_eq!(common, [0, 2]);
        assert_eq!(sort(&[], &mut Vec::new(), &mut order, &mut starts), 0);
    }
}
