use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why an experiment cannot be planned, kept or gathered.
#[derive(Debug, Error)]
pub enum Error {
    /// A plan's file is not there.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A plan that cannot be understood.
    #[error("{place}: {reason}")]
    Plan {
        /// The file and line.
        place: String,
        /// Why.
        reason: String,
    },
    /// What a stage made is not what it should be.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The text is gone.
    #[error("{path} is not there")]
    NoText {
        /// Where it was looked for.
        path: PathBuf,
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
    pub(crate) fn read(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }

    pub(crate) fn damaged(path: &std::path::Path, reason: &impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }
}
