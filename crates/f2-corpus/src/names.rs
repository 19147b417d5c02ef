//! The names of the files in a corpus folder. A checkpoint contains copies of some of them under
//! the same names.

use crate::split::Split;

/// The origin of a corpus, and the checksums of its files.
pub const MANIFEST: &str = "manifest.json";
/// The tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// How often each token occurs in the training split, by rank.
pub const COUNTS: &str = "counts.json";
/// The tokenizer's ids in order of frequency, if ids are not ranks.
pub const RANKS: &str = "ranks.json";
/// The frequency classes, added later by `f2 classes`.
pub const CLASSES: &str = "classes.json";

/// The vocabulary of a tokenizer in GPT-2's older pair of files, which are only read.
pub const VOCABULARY: &str = "vocab.json";
/// Its merges.
pub const MERGES: &str = "merges.txt";

/// The tokens of a split: its only file, or one of several.
pub(crate) fn shard(split: Split, file: Option<usize>) -> String {
    match file {
        None => format!("{}.bin", split.name()),
        Some(file) => format!("{}-{file:05}.bin", split.name()),
    }
}

/// The text of a split, if requested.
pub(crate) fn text(split: Split) -> String {
    format!("{}.jsonl", split.name())
}

/// Whether a corpus may contain a file of this name.
pub(crate) fn is_own(name: &str) -> bool {
    [MANIFEST, TOKENIZER, COUNTS, RANKS, CLASSES].contains(&name)
        || Split::ALL.into_iter().any(|split| name == text(split) || is_shard(split, name))
}

/// Whether a file of this name holds tokens of a split: the only file, or one of several.
pub fn is_shard(split: Split, name: &str) -> bool {
    let number = name
        .strip_prefix(split.name())
        .and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".bin"))
        .and_then(|number| number.parse().ok());
    name == shard(split, None) || number.is_some_and(|number| name == shard(split, Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_corpus_are_known_by_name() {
        for name in ["train.bin", "valid-00000.bin", "test-12345.bin", "train-100000.bin"] {
            assert!(is_own(name), "{name}");
        }
        for name in ["train-0.bin", "train-.bin", "train-00000.txt", "training-00000.bin", "a.bin"]
        {
            assert!(!is_own(name), "{name}");
        }
    }
}
