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
    /// The corpus.
    pub corpus: CorpusRecord,
    /// SHA-256 of the frequency classes' file; `None` for a plain softmax.
    pub classes_sha256: Option<String>,
    /// The model it started from; `None` if it started from random values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<InitialRecord>,
    /// The number of learned parameters.
    pub parameters: usize,
    /// The name of the device it began on.
    pub device: String,
    /// The number of threads it began with.
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
    /// The size of the vocabulary.
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
