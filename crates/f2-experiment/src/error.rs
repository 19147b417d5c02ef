//! Why an experiment cannot be planned, stored or collected.

use std::path::{Path, PathBuf};

use f2_files::{ReadError, WriteError};
use thiserror::Error;

/// Why an experiment cannot be planned, stored or collected.
#[derive(Debug, Error)]
pub enum Error {
    /// The file of a plan, or of a completed stage, cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file or folder could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The plan is invalid.
    #[error("{place}: {reason}")]
    Plan {
        /// The file and line.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A file written by a stage is invalid.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A corpus or text does not exist.
    #[error("{path} does not exist")]
    NoText {
        /// Its path.
        path: PathBuf,
    },
    /// The paths mix corpus folders and text.
    #[error("{corpus} is a corpus and {text} is text")]
    CorpusAndText {
        /// The corpus.
        corpus: PathBuf,
        /// The text.
        text: PathBuf,
    },
    /// A corpus of pairs was given, but the paper's protocols continue running text.
    #[error("{} holds pairs, and the paper's experiments are of running text", path.display())]
    Pairs {
        /// The corpus.
        path: PathBuf,
    },
    /// Several corpora were given where one is needed.
    #[error("{} are {} corpora where one is needed", list(paths), paths.len())]
    SeveralCorpora {
        /// The corpora.
        paths: Vec<PathBuf>,
    },
    /// The tokenizers differ, so a model of one corpus cannot be transferred to the other.
    #[error("{} and {} are tokenized differently: {reason}", main.display(), pretraining.display())]
    Tokenizers {
        /// The corpus to transfer to.
        main: PathBuf,
        /// The one to pretrain on.
        pretraining: PathBuf,
        /// How they differ.
        reason: String,
    },
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] f2_corpus::Error),
    /// The classes cannot be read.
    #[error(transparent)]
    Classes(#[from] f2_classes::ClassesError),
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] f2_lm::Error),
}

impl Error {
    pub(crate) fn damaged(path: &Path, reason: &impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
