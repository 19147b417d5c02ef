//! `manifest.json`: the origin and the contents of a corpus.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::FileRecord;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::{Boundaries, Digest};
use crate::names;
use crate::split::{Fractions, Split};

pub(crate) const VERSION: u32 = 2;

/// The origin and contents of a corpus: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) version: u32,
    /// The program that made the corpus.
    pub made_by: String,
    /// The files it was made from, with the split each was given for.
    pub inputs: Vec<Input>,
    /// The settings it was made with.
    pub options: Recorded,
    /// Size of the vocabulary.
    pub vocabulary_size: usize,
    /// The size of each split, in the order of [`Split::ALL`].
    pub splits: Vec<SplitSize>,
    /// Every other file of the corpus by name, but for the classes, which come later.
    pub files: BTreeMap<String, FileRecord>,
    /// SHA-256 of the manifest with this field empty.
    pub(crate) checksum: String,
}

/// Read before the rest, so that another version is named as such and not as a missing field.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
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
    /// Whether they were spread in their order, each split one piece of the text.
    pub in_order: bool,
    /// The vocabulary size asked for, or the tokenizer given.
    pub tokenizer: String,
    /// Whether the tokenizer's own ids were kept.
    pub keep_ids: bool,
    /// The token after every document.
    pub end_of_text: Option<String>,
    /// The token before every document, which is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_of_text: Option<String>,
}

/// The paper's dataset table: one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSize {
    /// Which split.
    pub split: Split,
    /// Documents.
    pub documents: u64,
    /// Words, separated by white space.
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
    /// Reads a `manifest.json` and makes sure that it is what was written.
    pub fn load(path: &Path) -> Result<Self> {
        let text = f2_files::read_text(path)?;
        Self::from_json(&text).map_err(|reason| Error::corrupt(path, reason))
    }

    fn from_json(text: &str) -> std::result::Result<Self, String> {
        let broken = |error: serde_json::Error| error.to_string();
        let Versioned { version } = serde_json::from_str(text).map_err(broken)?;
        if version < VERSION {
            return Err(format!(
                "version {version} of the corpus, from before its files were bound together; \
                 this program reads version {VERSION}"
            ));
        }
        if version != VERSION {
            return Err(format!("version {version} of the corpus, expected {VERSION}"));
        }
        let manifest: Self = serde_json::from_str(text).map_err(broken)?;
        if f2_files::is_sealed(text, &manifest.checksum) {
            Ok(manifest)
        } else {
            Err("its content does not match its checksum".to_owned())
        }
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a manifest always has a JSON form");
        Ok(f2_files::write_text_atomically(path, &f2_files::seal(&text))?)
    }

    /// The record of the corpus's file of this name.
    pub(crate) fn file(&self, name: &str) -> Result<&FileRecord> {
        let unlisted = || Error::corrupt(Path::new(names::MANIFEST), format!("it lists no {name}"));
        self.files.get(name).ok_or_else(unlisted)
    }

    /// SHA-256 of `tokenizer.json`, in hexadecimal.
    pub fn tokenizer_sha256(&self) -> Result<&str> {
        Ok(&self.file(names::TOKENIZER)?.sha256)
    }

    /// The size of a split.
    pub(crate) fn size(&self, split: Split) -> Option<&SplitSize> {
        self.splits.iter().find(|size| size.split == split)
    }
}
