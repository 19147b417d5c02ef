//! Algorithm 1 of the paper.

use crate::prefix::PrefixSums;

/// Algorithm 1 of the paper for a given K: class j ends after the first rank at which the
/// cumulative share reaches j/K, and the last class at the end of the vocabulary.
///
/// In integers, `K · cum ≥ j · T`, so that rounding never affects a cut. For K up to the cap every
/// token is at most a class's share and reaches one target at a time. For a larger K no token ends
/// two classes, and a token is reserved for every later class.
pub(crate) fn ends(sums: &PrefixSums, k: usize) -> Vec<usize> {
    let (vocabulary, total) = (sums.vocabulary(), u128::from(sums.total()));
    let mut ends = Vec::with_capacity(k);
    let mut start = 0;
    for class in 1..k {
        let target = class as u128 * total;
        let reached = |mass: u64| k as u128 * u128::from(mass) >= target;
        start = sums.first_ranks(start, reached).min(vocabulary - (k - class));
        ends.push(start);
    }
    ends.push(vocabulary);
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankCounts;

    /// The paper's loop over tokens, in integers.
    fn scan(counts: &[u64], k: usize) -> Vec<usize> {
        let total: u64 = counts.iter().sum();
        let (mut ends, mut mass) = (Vec::new(), 0);
        for (rank, count) in counts.iter().enumerate() {
            mass += count;
            let open = k - ends.len();
            let met = k as u64 * mass >= (ends.len() as u64 + 1) * total;
            if open > 1 && (met || counts.len() - (rank + 1) == open - 1) {
                ends.push(rank + 1);
            }
        }
        ends.push(counts.len());
        ends
    }

    #[test]
    fn searching_for_the_cuts_finds_those_of_the_scan() {
        let lists: [&[u64]; 5] =
            [&[90, 5, 3, 2], &[9, 9, 9, 4, 4, 4, 1, 1, 1], &[1; 36], &[6, 6, 0, 0], &[7]];
        for counts in lists {
            let sums = PrefixSums::new(&RankCounts::new(counts).unwrap());
            for k in 1..=counts.len() {
                assert_eq!(ends(&sums, k), scan(counts, k), "{counts:?} {k}");
            }
        }
    }

    #[test]
    fn equal_tokens_are_shared_out_evenly_for_every_k() {
        let sums = PrefixSums::new(&RankCounts::new(&[1; 360]).unwrap());
        for k in 1..=60_usize {
            let even: Vec<usize> = (1..=k).map(|class| (360 * class).div_ceil(k)).collect();
            assert_eq!(ends(&sums, k), even);
        }
    }
}
