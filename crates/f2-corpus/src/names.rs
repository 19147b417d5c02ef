//! The names of the files in a corpus folder. A checkpoint carries copies of some by the same
//! names.

use crate::split::Split;

/// The origin of a corpus, and the checksums of its files.
pub const MANIFEST: &str = "manifest.json";
/// Its tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// How often each token occurs in the training split, by rank.
pub const COUNTS: &str = "counts.json";
/// The tokenizer's ids in order of frequency, where they are not ranks.
pub const RANKS: &str = "ranks.json";
/// The frequency classes, added by whoever cuts them.
pub const CLASSES: &str = "classes.json";

pub(crate) fn shard(split: Split) -> String {
    format!("{}.bin", split.name())
}

/// The text of a split, where it was requested.
pub(crate) fn text(split: Split) -> String {
    format!("{}.jsonl", split.name())
}

/// Whether a file of this name may lie in a corpus.
pub(crate) fn is_own(name: &str) -> bool {
    [MANIFEST, TOKENIZER, COUNTS, RANKS, CLASSES].contains(&name)
        || Split::ALL
            .into_iter()
            .any(|split| [shard(split), text(split)].contains(&name.to_owned()))
}
