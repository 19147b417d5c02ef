//! The sealed record in the folder of every step: its job and its files.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{FileRecord, ReadError, regular_file};
use serde::{Deserialize, Serialize};

use super::Part;
use super::job::Job;
use crate::error::{Error, Result};
use crate::manifest::{Input, SplitSize};
use crate::sealed::{Sealed, recorded_files};

const VERSION: u32 = 1;

/// The name of the record.
pub(super) const RECORD: &str = "record.json";
/// The word counts of a part.
pub(super) const WORDS: &str = "words.bin";

/// The record of a finished step of a preparation in parts: `record.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    pub(super) step: Step,
    /// The number of the part; `None` for the vocabulary.
    pub(super) part: Option<usize>,
    pub(super) job: Job,
    /// The files of the text that were read, with their digests.
    pub(super) inputs: Vec<Input>,
    /// Every other file of the folder.
    pub(super) files: BTreeMap<String, FileRecord>,
    checksum: String,
}

/// The steps, and the results of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    /// The words of a part were counted.
    Counted {
        /// Documents of all splits.
        documents: u64,
    },
    /// The vocabulary was learned.
    Learned {
        /// SHA-256 of the word counts of every part.
        from: Vec<String>,
        /// The number that word counts were divided by.
        counts_divided_by: u64,
    },
    /// The documents of a part were encoded.
    Encoded {
        /// SHA-256 of the learned tokenizer, if one was learned.
        vocabulary: Option<String>,
        splits: Vec<SplitSize>,
    },
}

impl Sealed for Record {
    fn check_version(version: u32) -> std::result::Result<(), String> {
        match version {
            VERSION => Ok(()),
            _ => Err(format!("version {version} of the record, expected {VERSION}")),
        }
    }

    fn checksum(&self) -> &str {
        &self.checksum
    }
}

impl Record {
    /// The record of a step, with the files now in its folder.
    pub(super) fn of(
        folder: &Path,
        names: impl IntoIterator<Item = String>,
        part: Option<Part>,
        job: Job,
        step: Step,
        inputs: Vec<Input>,
    ) -> Result<Self> {
        let files = recorded_files(folder, names)?;
        let part = part.map(Part::number);
        Ok(Self { version: VERSION, step, part, job, inputs, files, checksum: String::new() })
    }

    /// Reads a `record.json` and verifies its checksum.
    pub fn load(path: &Path) -> Result<Self> {
        let text = f2_files::read_text(regular_file(path)?)?;
        Self::from_json(&text).map_err(|reason| Error::BadPart { path: path.to_path_buf(), reason })
    }

    /// SHA-256 of one of its files.
    pub(super) fn sha256(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|file| file.sha256.as_str())
    }

    /// Checks that one of its files is unchanged.
    pub(super) fn check_file(&self, folder: &Path, name: &str) -> Result<()> {
        let path = folder.join(name);
        let reason = match self.files.get(name) {
            Some(expected) => expected.difference_at(&path).map_err(ReadError::of(&path))?,
            None => Some("its record does not list it".to_owned()),
        };
        reason.map_or(Ok(()), |reason| Err(Error::BadPart { path, reason }))
    }
}
