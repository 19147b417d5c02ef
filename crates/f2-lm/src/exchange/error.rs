//! Errors of import and export.

use std::path::{Path, PathBuf};

use f2_files::{LockError, ReadError, WriteError};

use crate::tensor_file::TensorFileError;

/// Why a model cannot be imported or exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file or folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process is writing the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The folder to write exists already.
    #[error("{} exists already", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that lacks something every model has.
    #[error("{} is not a Hugging Face model folder: {reason}", path.display())]
    NotAFolder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Weights in another format.
    #[error(
        "{} holds weights in an unsupported format: only safetensors, since pickled files can run \
         code",
        path.display()
    )]
    ForeignWeights {
        /// The file.
        path: PathBuf,
    },
    /// A model that is neither a GPT-2 nor an F² model.
    #[error("{} describes {found}; only GPT-2 and F² language models are supported", path.display())]
    Architecture {
        /// The configuration.
        path: PathBuf,
        /// The model it describes.
        found: String,
    },
    /// A variant of GPT-2 that the decoder does not implement.
    #[error("{}: `{key}` is {found}; the decoder here has {needed}", path.display())]
    Variant {
        /// The configuration.
        path: PathBuf,
        /// The setting.
        key: &'static str,
        /// Its value.
        found: String,
        /// The only supported value.
        needed: &'static str,
    },
    /// A file that is not what it should be.
    #[error("{}: {reason}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A required tensor is missing.
    #[error("{}: tensor `{name}` is missing; the model needs it in shape {needed:?}", path.display())]
    MissingTensor {
        /// The file it was looked for in.
        path: PathBuf,
        /// Its name.
        name: String,
        /// The shape it should have.
        needed: Vec<usize>,
    },
    /// A tensor of another shape than the configuration says.
    #[error(
        "{}: tensor `{name}` has shape {found:?}; the model needs {needed:?}",
        path.display()
    )]
    MisshapenTensor {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
        /// The shape it has.
        found: Vec<usize>,
        /// The shape it should have.
        needed: Vec<usize>,
    },
    /// A tensor that neither a GPT-2 nor an F² model has.
    #[error("{}: tensor `{name}` belongs to another model", path.display())]
    UnknownTensor {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
    },
    /// An F² model without its `classes.json`.
    #[error("{} is missing; it defines the frequency classes", path.display())]
    NoClasses {
        /// The file.
        path: PathBuf,
    },
    /// A tokenizer with more tokens than the embedding has rows.
    #[error(
        "{} has {tokens} tokens, but the embedding only {rows} rows",
        path.display()
    )]
    TokenizerTooLarge {
        /// The tokenizer.
        path: PathBuf,
        /// One more than its largest id.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// Stopped on request.
    #[error("interrupted")]
    Interrupted,
    /// The model to export cannot be used.
    #[error(transparent)]
    Model(#[from] crate::Error),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] f2_corpus::Error),
    /// The classes cannot be used.
    #[error(transparent)]
    Classes(#[from] f2_classes::ClassesError),
}

impl ExchangeError {
    pub(super) fn bad(path: &Path, reason: impl Into<String>) -> Self {
        Self::BadFile { path: path.to_path_buf(), reason: reason.into() }
    }

    pub(super) fn tensors(path: &Path) -> impl FnOnce(TensorFileError) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| match error {
            TensorFileError::Disk(source) => ReadError { path, source }.into(),
            TensorFileError::Bad(reason) => Self::BadFile { path, reason },
        }
    }
}
