//! `manifest.json`: the origin and the contents of a corpus.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{FileRecord, regular_file};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::{Boundaries, Digest};
use crate::names;
use crate::pairs::Pairs;
use crate::sealed::Sealed;
use crate::split::{Fractions, Split};

/// The version in which every split is one file.
const ONE_FILE: u32 = 2;
/// The version in which a split may have several files.
const SEVERAL_FILES: u32 = 3;
/// The version in which documents are pairs; programs that know only text must refuse it.
const PAIRS: u32 = 4;

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
    /// Every other file of the corpus by name, except the classes, which are added later.
    pub files: BTreeMap<String, FileRecord>,
    /// SHA-256 of the manifest with this field empty.
    pub(crate) checksum: String,
}

/// One input file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The split it was given for; `None` if its documents were spread over all three.
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
    /// How documents were spread over the splits, if they were.
    pub fractions: Option<Fractions>,
    /// Whether they were spread in order, so that each split is contiguous.
    pub in_order: bool,
    /// The requested vocabulary size, or the given tokenizer.
    pub tokenizer: String,
    /// Whether the tokenizer's own ids were kept.
    pub keep_ids: bool,
    /// The token after every document.
    pub end_of_text: Option<String>,
    /// The token before every document, excluded from the counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_of_text: Option<String>,
    /// If documents are pairs: the fields they were read from, and the separator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
}

/// The size of a split: one row of the paper's dataset table.
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
    /// For pairs: the size of the targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetSize>,
}

/// The size of all targets of a split of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSize {
    /// Words, separated by white space.
    pub words: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Tokens, including those that end the texts.
    pub tokens: u64,
}

impl SplitSize {
    pub(crate) fn empty(split: Split) -> Self {
        Self { split, documents: 0, words: 0, bytes: 0, tokens: 0, targets: None }
    }

    /// Adds the size of a part of the split.
    pub(crate) fn add(&mut self, more: &Self) {
        self.documents += more.documents;
        self.words += more.words;
        self.bytes += more.bytes;
        self.tokens += more.tokens;
        if let Some(more) = &more.targets {
            let targets = self.targets.get_or_insert_default();
            targets.words += more.words;
            targets.bytes += more.bytes;
            targets.tokens += more.tokens;
        }
    }
}

/// Name and version of this program, for `made_by`.
pub(crate) fn made_by() -> String {
    format!("f2 {}", env!("CARGO_PKG_VERSION"))
}

impl Sealed for Manifest {
    fn check_version(version: u32) -> std::result::Result<(), String> {
        match version {
            ONE_FILE..=PAIRS => Ok(()),
            ..ONE_FILE => Err(format!(
                "version {version} of the corpus, from before its files were bound together; \
                 this program reads versions {ONE_FILE} to {PAIRS}"
            )),
            _ => Err(format!("version {version} of the corpus, expected {ONE_FILE} to {PAIRS}")),
        }
    }

    fn checksum(&self) -> &str {
        &self.checksum
    }
}

impl Manifest {
    /// Reads a `manifest.json` and verifies its checksum.
    pub fn load(path: &Path) -> Result<Self> {
        let text = f2_files::read_text(regular_file(path)?)?;
        Self::from_json(&text).map_err(|reason| Error::corrupt(path, reason))
    }

    /// The record of a corpus file.
    pub(crate) fn file(&self, name: &str) -> Result<&FileRecord> {
        let unlisted = || Error::corrupt(Path::new(names::MANIFEST), format!("it lists no {name}"));
        self.files.get(name).ok_or_else(unlisted)
    }

    /// The lowest version that describes these files, so that older programs can read a corpus
    /// with one file per split.
    pub(crate) fn version_of(files: &BTreeMap<String, FileRecord>, pairs: bool) -> u32 {
        if pairs {
            return PAIRS;
        }
        let alone = |split| files.contains_key(&names::shard(split, None));
        if Split::ALL.into_iter().all(alone) { ONE_FILE } else { SEVERAL_FILES }
    }

    /// The shard files of a split, in order; at least one.
    pub(crate) fn shard_files(&self, split: Split) -> Result<Vec<(String, &FileRecord)>> {
        let files = shard_files(&self.files, split);
        files.ok_or_else(|| self.file(&names::shard(split, None)).unwrap_err())
    }

    /// SHA-256 of `tokenizer.json`, in hexadecimal.
    pub fn tokenizer_sha256(&self) -> Result<&str> {
        Ok(&self.file(names::TOKENIZER)?.sha256)
    }

    /// The size of a split.
    pub fn size(&self, split: Split) -> Option<&SplitSize> {
        self.splits.iter().find(|size| size.split == split)
    }
}

/// The shard files of a split among these, in order; `None` if there are none.
pub(crate) fn shard_files(
    files: &BTreeMap<String, FileRecord>,
    split: Split,
) -> Option<Vec<(String, &FileRecord)>> {
    let listed = |file| {
        let name = names::shard(split, file);
        files.get(&name).map(|record| (name, record))
    };
    if let Some(alone) = listed(None) {
        return Some(vec![alone]);
    }
    let several: Vec<_> = (0..).map_while(|file| listed(Some(file))).collect();
    (!several.is_empty()).then_some(several)
}
