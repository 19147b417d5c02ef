//! Why an experiment cannot be planned, kept or gathered.

use std::path::{Path, PathBuf};

use f2_files::{ReadError, WriteError};
use thiserror::Error;

/// Why an experiment cannot be planned, kept or gathered.
#[derive(Debug, Error)]
pub enum Error {
    /// A plan's file is not there, or what a stage made.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file or folder could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A plan that cannot be understood.
    #[error("{place}: {reason}")]
    Plan {
        /// The file and line.
        place: String,
        /// Why.
        reason: String,
    },
    /// A file that a stage made is not what it should be.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A corpus or text is not there.
    #[error("{path} is not there")]
    NoText {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Corpus folders and text cannot be told apart as one corpus or several.
    #[error("{corpus} is a corpus and {text} is text")]
    CorpusAndText {
        /// The corpus.
        corpus: PathBuf,
        /// The text.
        text: PathBuf,
    },
    /// The paper's protocols continue running text.
    #[error("{} holds pairs, and the paper's experiments are of running text", path.display())]
    Pairs {
        /// The corpus.
        path: PathBuf,
    },
    /// One corpus is needed.
    #[error("{} are {} corpora where one is needed", list(paths), paths.len())]
    SeveralCorpora {
        /// The corpora.
        paths: Vec<PathBuf>,
    },
    /// A model of one corpus cannot be transferred to the other.
    #[error("{} and {} are cut into different tokens: {reason}", main.display(), pretraining.display())]
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
