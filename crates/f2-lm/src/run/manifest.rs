//! `manifest.json`: the corpus, classes and model a run was made from.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// `manifest.json`: the corpus, classes and model of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The program and its version.
    pub program: String,
    /// When the run began, in seconds since 1970.
    pub created: u64,
    /// The text.
    pub corpus: CorpusRecord,
    /// SHA-256 of the frequency classes' file; none for a plain softmax.
    pub classes_sha256: Option<String>,
    /// The model it started from; none where it started from random values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<InitialRecord>,
    /// The number of learned parameters.
    pub parameters: usize,
    /// The device it began on, in words.
    pub device: String,
    /// The threads it began on.
    pub threads: usize,
}

/// The identity of the model a run started from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialRecord {
    /// The folder its files were in.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    /// SHA-256 of its parameters' file.
    pub sha256: String,
}

/// The identity of a prepared corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusRecord {
    /// Its folder.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    /// The fingerprint of its rank counts, which its frequency classes carry too.
    pub counts_sha256: String,
    /// SHA-256 of its tokenizer's file.
    pub tokenizer_sha256: String,
    /// The number of tokens there are.
    pub vocabulary: usize,
    /// Tokens in the training split.
    pub train_tokens: u64,
    /// Tokens in the validation split.
    pub valid_tokens: u64,
}

impl Manifest {
    /// A run that begins now.
    pub fn new(
        corpus: CorpusRecord,
        classes_sha256: Option<String>,
        parameters: usize,
        device: &str,
        threads: usize,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            program: concat!("f2 ", env!("CARGO_PKG_VERSION")).to_owned(),
            created: now.map_or(0, |since| since.as_secs()),
            corpus,
            classes_sha256,
            initial: None,
            parameters,
            device: device.to_owned(),
            threads,
        }
    }
}
