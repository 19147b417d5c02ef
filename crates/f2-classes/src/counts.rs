//! Token counts by frequency rank, and reading them.

use std::path::Path;

use serde_json::Value;

use crate::{ClassesError, CountsFingerprint};

/// How often each token was seen in training, by frequency rank: descending, ties in the order of
/// the original ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankCounts {
    counts: Vec<u64>,
    ids: Vec<u32>,
    total: u64,
    unseen_floor: u64,
    fingerprint: CountsFingerprint,
}

impl RankCounts {
    /// Ranks counts listed by token id.
    ///
    /// ```
    /// let counts = f2_classes::RankCounts::new(&[1, 7, 1])?;
    /// assert_eq!(counts.counts(), [7, 1, 1]);
    /// assert_eq!(counts.ids(), [1, 0, 2]);
    /// # Ok::<(), f2_classes::ClassesError>(())
    /// ```
    pub fn new(counts_by_id: &[u64]) -> Result<Self, ClassesError> {
        if counts_by_id.is_empty() {
            return Err(ClassesError::NoCounts);
        }
        let mut ids: Vec<u32> = (0..counts_by_id.len() as u32).collect();
        ids.sort_by_key(|&id| std::cmp::Reverse(counts_by_id[id as usize]));
        let counts: Vec<u64> = ids.iter().map(|&id| counts_by_id[id as usize]).collect();
        if counts[0] == 0 {
            return Err(ClassesError::AllZero { tokens: counts.len() });
        }
        let fingerprint = CountsFingerprint::of(&counts);
        Ok(Self { total: total(&counts)?, counts, ids, unseen_floor: 0, fingerprint })
    }

    /// Sets the count of unseen tokens, to 0 or 1. The ranks and the fingerprint remain those of
    /// the original counts.
    pub fn with_unseen(mut self, floor: u64) -> Result<Self, ClassesError> {
        for count in self.counts.iter_mut().rev().take_while(|count| **count < floor) {
            *count = floor;
        }
        self.total = total(&self.counts)?;
        self.unseen_floor = floor;
        Ok(self)
    }

    /// The counts, by rank.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The original id of each rank.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// How many tokens the vocabulary has.
    pub fn vocabulary(&self) -> usize {
        self.counts.len()
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The count assigned to unseen tokens.
    pub fn unseen_floor(&self) -> u64 {
        self.unseen_floor
    }

    /// The paper's `maxClassNum`: with more classes, the most frequent token alone would have more
    /// than a class's share of the mass.
    pub fn class_cap(&self) -> usize {
        let cap = usize::try_from(self.total / self.counts[0]).unwrap_or(usize::MAX);
        cap.min(self.vocabulary())
    }

    /// The fingerprint of the original counts.
    pub fn fingerprint(&self) -> &CountsFingerprint {
        &self.fingerprint
    }
}

fn total(counts: &[u64]) -> Result<u64, ClassesError> {
    let sum = counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
    sum.ok_or(ClassesError::TotalTooLarge)
}

/// Reads counts from a JSON list, indexed by token id.
pub fn read_counts(path: &Path) -> Result<RankCounts, ClassesError> {
    let text = f2_files::read_text(path)?;
    let json: Value = serde_json::from_str(&text)
        .map_err(|source| ClassesError::Json { path: path.to_path_buf(), source })?;
    let Value::Array(values) = json else {
        return Err(ClassesError::NotCounts { path: path.to_path_buf() });
    };
    let counts: Result<Vec<u64>, _> =
        values.iter().enumerate().map(|(index, value)| count(index, value)).collect();
    counts.and_then(|counts| RankCounts::new(&counts)).map_err(|error| error.in_file(path))
}

fn count(index: usize, value: &Value) -> Result<u64, ClassesError> {
    let found = || value.to_string();
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(count) => Ok(count),
            None if number.as_f64().is_some_and(|number| number < 0.0) => {
                Err(ClassesError::Negative { index, found: found() })
            }
            None => Err(ClassesError::NotWhole { index, found: found() }),
        },
        _ => Err(ClassesError::NotANumber { index, found: found() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RankCounts, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        std::fs::write(&path, text).unwrap();
        let prefix = folder.path().display().to_string() + "/";
        read_counts(&path).map_err(|error| error.to_string().replace(&prefix, ""))
    }

    #[test]
    fn unseen_tokens_get_the_floor_and_keep_their_rank() {
        let counts = RankCounts::new(&[0, 2, 1, 0]).unwrap();
        let floored = counts.clone().with_unseen(1).unwrap();
        assert_eq!(floored.counts(), [2, 1, 1, 1]);
        assert_eq!(floored.ids(), [1, 2, 0, 3]);
        assert_eq!(floored.total(), 5);
        assert_eq!(floored.fingerprint(), counts.fingerprint());
    }

    #[test]
    fn each_bad_count_is_named_with_its_reason() {
        let cases = [
            ("[]", "counts.json: there are no counts; a vocabulary has at least one token"),
            ("[4, -1]", "counts.json: count 1 is -1; a count cannot be negative"),
            ("[-0.5]", "counts.json: count 0 is -0.5; a count cannot be negative"),
            ("[1.5]", "counts.json: count 0 is 1.5; a count is a whole number below 2^64"),
            (r#"["7"]"#, r#"counts.json: count 0 is "7", which is not a number"#),
            (
                "[18446744073709551615, 1]",
                "counts.json: the counts add up to 2^64 or more, which no corpus holds",
            ),
            (r#"{"counts": [1]}"#, "counts.json holds no list of counts"),
        ];
        for (text, reason) in cases {
            assert_eq!(read(text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn the_cap_is_the_whole_part_of_one_over_the_largest_share() {
        assert_eq!(RankCounts::new(&[90, 5, 3, 2]).unwrap().class_cap(), 1);
        assert_eq!(RankCounts::new(&[4, 2, 1, 1]).unwrap().class_cap(), 2);
        assert_eq!(RankCounts::new(&[5; 8]).unwrap().class_cap(), 8);
    }
}
