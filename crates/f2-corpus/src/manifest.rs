use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::{Boundaries, Digest};
use crate::split::{Fractions, Split};

pub(crate) const VERSION: u32 = 1;

/// Where a corpus comes from and what is in it: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) version: u32,
    /// The program that made the corpus.
    pub made_by: String,
    /// The files it was made from, with the split each was given for.
    pub inputs: Vec<Input>,
    /// The choices it was made with.
    pub options: Recorded,
    /// Size of the vocabulary.
    pub vocabulary_size: usize,
    /// SHA-256 of `tokenizer.json`, in hexadecimal.
    pub tokenizer_sha256: String,
    /// What each split holds, in the order of [`Split::ALL`].
    pub splits: Vec<SplitSize>,
}

/// One input file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The split it was given for; `None` where its documents were spread over all three.
    pub split: Option<Split>,
    /// Path, size and hash.
    #[serde(flatten)]
    pub digest: Digest,
}

/// The options that shape a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Where documents begin and end.
    pub documents: Boundaries,
    /// The field or column that was read.
    pub field: String,
    /// Whether bad UTF-8 was replaced.
    pub lossy: bool,
    /// How documents were spread over the splits, where they were.
    pub fractions: Option<Fractions>,
    /// The vocabulary size asked for, or the tokenizer given.
    pub tokenizer: String,
    /// Whether the tokenizer's own ids were kept.
    pub keep_ids: bool,
    /// The token after every document.
    pub end_of_text: Option<String>,
}

/// The paper's dataset table: one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSize {
    /// Which split.
    pub split: Split,
    /// Documents.
    pub documents: u64,
    /// Words: what stands between white space.
    pub words: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Tokens.
    pub tokens: u64,
}

impl SplitSize {
    pub(crate) fn empty(split: Split) -> Self {
        Self { split, documents: 0, words: 0, bytes: 0, tokens: 0 }
    }
}

impl Manifest {
    /// Reads a `manifest.json`.
    pub fn load(path: &Path) -> Result<Self> {
        let text = f2_files::read_text(path)?;
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| Error::corrupt(path, error.to_string()))?;
        if manifest.version == VERSION {
            Ok(manifest)
        } else {
            let reason = format!("version {} of the corpus, expected {VERSION}", manifest.version);
            Err(Error::corrupt(path, reason))
        }
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a manifest always has a JSON form");
        Ok(f2_files::write_text_atomically(path, &text)?)
    }
}
