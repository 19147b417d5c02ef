//! The job that parts belong to: text, options and program.

use std::path::Path;

use f2_files::ReadError;
use serde::{Deserialize, Serialize};

use super::difference::{file_difference, program_difference};
use crate::error::{Error, Result};
use crate::manifest::made_by;
use crate::prepare::inputs::Planned;
use crate::split::Split;
use crate::{Options, Silent, TokenizerChoice};

/// Everything that determines the content of the parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) made_by: String,
    pub(super) parts: usize,
    pub(super) options: Options,
    /// SHA-256 of the given tokenizer's files.
    pub(super) tokenizer_sha256: Vec<String>,
    pub(super) files: Vec<JobFile>,
}

/// One file of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobFile {
    pub(super) split: Option<Split>,
    pub(super) path: String,
    /// Bytes on disk.
    pub(super) bytes: u64,
}

impl Job {
    /// The job of these options, and the files it reads.
    pub(super) fn new(options: &Options, parts: usize) -> Result<(Self, Vec<Planned>)> {
        let plan = Planned::all(options, None, &Silent)?;
        let job = Self {
            made_by: made_by(),
            parts,
            options: options.clone(),
            tokenizer_sha256: tokenizer_hashes(&options.tokenizer)?,
            files: files(&plan)?,
        };
        // A record cannot hold names that are not UTF-8.
        serde_json::to_value(&job)
            .map_err(|_| Error::NameNotUtf8 { inputs: options.inputs.describe() })?;
        Ok((job, plan))
    }

    /// Refuses parts made by another version of the program.
    pub(super) fn check_program(&self, parts: &Path) -> Result<()> {
        match program_difference(&made_by(), &self.made_by) {
            None => Ok(()),
            Some(difference) => Err(Error::OtherJob { path: parts.to_path_buf(), difference }),
        }
    }

    /// Refuses a given tokenizer that has changed since the parts were encoded.
    pub(super) fn check_tokenizer(&self) -> Result<()> {
        if tokenizer_hashes(&self.options.tokenizer)? == self.tokenizer_sha256 {
            return Ok(());
        }
        Err(Error::InputChanged { path: self.options.tokenizer.describe() })
    }

    /// The size of the vocabulary to learn from the text; `None` if a tokenizer is given.
    pub(super) fn vocabulary_to_learn(&self) -> Option<usize> {
        match self.options.tokenizer {
            TokenizerChoice::Train { vocabulary_size } => Some(vocabulary_size),
            _ => None,
        }
    }

    /// The files on disk, which must still be those of the job.
    pub(super) fn plan(&self) -> Result<Vec<Planned>> {
        let plan = Planned::all(&self.options, None, &Silent)?;
        let found = files(&plan)?;
        match file_difference(&self.files, &found) {
            None => Ok(plan),
            Some(difference) => Err(Error::TextChanged { difference }),
        }
    }
}

fn files(plan: &[Planned]) -> Result<Vec<JobFile>> {
    let file = |planned: &Planned| {
        let (split, path) = (planned.split, planned.shown.clone());
        Ok(JobFile { split, path, bytes: planned.source.size()? })
    };
    plan.iter().map(file).collect()
}

fn tokenizer_hashes(choice: &TokenizerChoice) -> Result<Vec<String>> {
    let hash = |path: &Path| -> Result<String> {
        Ok(f2_files::FileRecord::of(path).map_err(ReadError::of(path))?.sha256)
    };
    match choice {
        TokenizerChoice::Train { .. } => Ok(Vec::new()),
        TokenizerChoice::File(path) => Ok(vec![hash(path)?]),
        TokenizerChoice::VocabularyAndMerges { vocabulary, merges } => {
            Ok(vec![hash(vocabulary)?, hash(merges)?])
        }
    }
}
