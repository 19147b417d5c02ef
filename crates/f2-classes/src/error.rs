//! Errors of counts and classes.

use std::path::{Path, PathBuf};

/// Errors of reading counts and of choosing, reading and writing classes.
#[derive(Debug, thiserror::Error)]
pub enum ClassesError {
    /// An empty vocabulary.
    #[error("there are no counts; a vocabulary has at least one token")]
    NoCounts,
    /// Nothing was counted.
    #[error("all {tokens} counts are zero; frequency classes need a token that was seen")]
    AllZero {
        /// Size of the vocabulary.
        tokens: usize,
    },
    /// A count below zero.
    #[error("count {index} is {found}; a count cannot be negative")]
    Negative {
        /// Position in the list, from 0.
        index: usize,
        /// The number as written.
        found: String,
    },
    /// A fraction, or a number too large for a count.
    #[error("count {index} is {found}; a count is a whole number below 2^64")]
    NotWhole {
        /// Position in the list, from 0.
        index: usize,
        /// The number as written.
        found: String,
    },
    /// A count that is not a number.
    #[error("count {index} is {found}, which is not a number")]
    NotANumber {
        /// Position in the list, from 0.
        index: usize,
        /// The value as written.
        found: String,
    },
    /// The sum of the counts does not fit 64 bits.
    #[error("the counts add up to 2^64 or more, which no corpus holds")]
    TotalTooLarge,
    /// No classes were requested.
    #[error("0 classes were requested; the vocabulary needs at least one")]
    NoClasses,
    /// More classes than tokens to put in them.
    #[error("{k} classes were requested, but the vocabulary has only {tokens} tokens")]
    MoreClassesThanTokens {
        /// Number of classes requested.
        k: usize,
        /// Size of the vocabulary.
        tokens: usize,
    },
    /// The authors' rule ran out of mass before the last class.
    #[error("the authors' rule cannot form {k} classes: too few tokens occur")]
    Unreachable {
        /// Number of classes requested.
        k: usize,
    },
    /// Ends that are not a partition of the ranks.
    #[error("the class ends are not strictly increasing from above 0: {ends:?}")]
    NotAPartition {
        /// The ends as found.
        ends: Vec<usize>,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Read(#[from] f2_files::ReadError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] f2_files::WriteError),
    /// A file that is not JSON, or lacks a field.
    #[error("{} is not the JSON expected there: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        source: serde_json::Error,
    },
    /// JSON that is not a list of counts.
    #[error("{} holds no list of counts", path.display())]
    NotCounts {
        /// The file.
        path: PathBuf,
    },
    /// A file of another version of the format.
    #[error("{} has format version {found}; this program reads version {expected}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The supported version.
        expected: u64,
    },
    /// A `classes.json` whose parts contradict each other.
    #[error("{}: {found} class ends are listed for k = {k}", path.display())]
    WrongK {
        /// The file.
        path: PathBuf,
        /// The number of classes the file states.
        k: usize,
        /// The number of class ends it lists.
        found: usize,
    },
    /// One of the above, found in a file.
    #[error("{}: {reason}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: Box<ClassesError>,
    },
}

impl ClassesError {
    /// The same error, naming the file it was found in.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self::InFile { path: path.to_path_buf(), reason: Box::new(self) }
    }
}
