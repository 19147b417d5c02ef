//! Token counts by frequency rank (`counts.json`), and the order of ids by rank (`ranks.json`).

use std::path::Path;

use f2_files::regular_file;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

const VERSION: u32 = 1;

/// How often each token occurs in the training split, by frequency rank (non-increasing).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    version: u32,
    /// Tokens in all.
    pub tokens: u64,
    /// Tokens of the vocabulary that never occur.
    pub unseen: usize,
    /// Occurrences of the token of each rank, 0 for unseen ones.
    pub counts: Vec<u64>,
}

impl Counts {
    fn new(counts: Vec<u64>) -> Self {
        let tokens = counts.iter().sum();
        let unseen = counts.iter().filter(|&&count| count == 0).count();
        Self { version: VERSION, tokens, unseen, counts }
    }

    /// Reads a `counts.json`.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = f2_files::read_bytes(regular_file(path)?)?;
        Self::from_json(&bytes).map_err(|reason| Error::corrupt(path, reason))
    }

    pub(crate) fn from_json(json: &[u8]) -> std::result::Result<Self, String> {
        let counts: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if counts.version != VERSION {
            return Err(format!("version {} of the counts, expected {VERSION}", counts.version));
        }
        if !counts.counts.is_sorted_by(|left, right| left >= right) {
            return Err("the counts are not in order of rank".to_owned());
        }
        let total = counts.counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        if total != Some(counts.tokens) {
            return Err(format!("the counts do not add up to {} tokens", counts.tokens));
        }
        let unseen = counts.counts.iter().filter(|&&count| count == 0).count();
        if unseen != counts.unseen {
            return Err(format!("{unseen} counts are zero, it says {}", counts.unseen));
        }
        Ok(counts)
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).expect("counts always have a JSON form");
        Ok(f2_files::write_text_atomically(path, &text)?)
    }
}

/// The order of the vocabulary by frequency.
///
/// ```
/// let (ranks, counts) = f2_corpus::Ranks::by_count(&[3, 0, 7, 3]);
/// assert_eq!(ranks.id_of_rank, [2, 0, 3, 1]);
/// assert_eq!(ranks.rank_of_id(), [1, 3, 0, 2]);
/// assert_eq!(counts.counts, [7, 3, 3, 0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranks {
    version: u32,
    /// The tokenizer's id of the token at each rank.
    pub id_of_rank: Vec<u32>,
}

impl Ranks {
    /// Sorts ids by count, the most frequent first, ties by id.
    pub fn by_count(count_of_id: &[u64]) -> (Self, Counts) {
        let mut id_of_rank: Vec<u32> = (0..count_of_id.len() as u32).collect();
        // A stable sort: ties stay in the order of their ids.
        id_of_rank.sort_by_key(|&id| std::cmp::Reverse(count_of_id[id as usize]));
        let counts = id_of_rank.iter().map(|&id| count_of_id[id as usize]).collect();
        (Self { version: VERSION, id_of_rank }, Counts::new(counts))
    }

    /// The rank of each of the tokenizer's ids.
    pub fn rank_of_id(&self) -> Vec<u32> {
        let mut rank_of_id = vec![0; self.id_of_rank.len()];
        for (rank, &id) in self.id_of_rank.iter().enumerate() {
            rank_of_id[id as usize] = rank as u32;
        }
        rank_of_id
    }

    /// Reads a `ranks.json`.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = f2_files::read_bytes(regular_file(path)?)?;
        Self::from_json(&bytes).map_err(|reason| Error::corrupt(path, reason))
    }

    pub(crate) fn from_json(json: &[u8]) -> std::result::Result<Self, String> {
        let ranks: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut sorted = ranks.id_of_rank.clone();
        sorted.sort_unstable();
        if ranks.version == VERSION && sorted.into_iter().eq(0..ranks.id_of_rank.len() as u32) {
            Ok(ranks)
        } else {
            Err("this is not a permutation of the vocabulary".to_owned())
        }
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).expect("ranks always have a JSON form");
        Ok(f2_files::write_text_atomically(path, &text)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rank_order_is_a_stable_permutation(counts in prop::collection::vec(0_u64..5, 1..200)) {
            let (ranks, sorted) = Ranks::by_count(&counts);
            for pair in ranks.id_of_rank.windows(2) {
                let [left, right] = [pair[0], pair[1]].map(|id| counts[id as usize]);
                prop_assert!(left > right || (left == right && pair[0] < pair[1]));
            }
            for (id, &rank) in ranks.rank_of_id().iter().enumerate() {
                prop_assert_eq!(ranks.id_of_rank[rank as usize] as usize, id);
                prop_assert_eq!(sorted.counts[rank as usize], counts[id]);
            }
        }
    }

    #[test]
    fn damaged_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        for (text, reason) in [
            ("{", "EOF"),
            (r#"{"version":2,"tokens":1,"unseen":0,"counts":[1]}"#, "version 2"),
            (r#"{"version":1,"tokens":3,"unseen":0,"counts":[1,2]}"#, "order of rank"),
            (r#"{"version":1,"tokens":4,"unseen":0,"counts":[2,1]}"#, "add up to 4"),
            (r#"{"version":1,"tokens":3,"unseen":1,"counts":[2,1]}"#, "0 counts are zero"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Counts::load(&path).unwrap_err().to_string();
            assert!(message.contains("counts.json") && message.contains(reason), "{message}");
        }
    }
}
