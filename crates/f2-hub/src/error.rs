//! Errors of the hub and its cache.

use std::path::PathBuf;

/// Errors of finding and fetching repositories.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub does not allow this name.
    #[error("`{name}` is not a name on the Hugging Face hub: {reason}")]
    Name {
        /// The name that was given.
        name: String,
        /// The form that a name has.
        reason: &'static str,
    },
    /// It is not in the cache and may not be downloaded.
    #[error("{repository} is not in the cache {}, and {reason}", cache.display())]
    NotCached {
        /// The repository.
        repository: String,
        /// The cache that was searched.
        cache: PathBuf,
        /// Why it was not downloaded.
        reason: &'static str,
    },
    /// The hub refuses it or does not have it.
    #[error("{endpoint} refused {repository}: {reason} (status {status})")]
    Refused {
        /// The hub.
        endpoint: String,
        /// The repository.
        repository: String,
        /// The meaning of the status.
        reason: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// It has none of the requested files.
    #[error("{repository} has none of the files that are needed")]
    NothingWanted {
        /// The repository.
        repository: String,
    },
    /// The hub cannot be reached, or the connection is lost again and again.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// The hub.
        endpoint: String,
        /// The system's error.
        reason: String,
    },
    /// An unexpected response of the hub.
    #[error("{url} answers with {reason}")]
    Answer {
        /// The address.
        url: String,
        /// The unexpected content.
        reason: String,
    },
    /// A downloaded file has another hash than the hub announced.
    #[error(
        "{file} of {repository} arrived damaged: its hash is {found}, the hub announced {announced}"
    )]
    Damaged {
        /// The repository.
        repository: String,
        /// The file.
        file: String,
        /// The hash it should have.
        announced: String,
        /// The hash it has.
        found: String,
    },
    /// A file of the cache cannot be read.
    #[error(transparent)]
    Read(#[from] f2_files::ReadError),
    /// The cache cannot be written.
    #[error(transparent)]
    Write(#[from] f2_files::WriteError),
    /// The user interrupted the download.
    #[error("stopped while {file} was being fetched")]
    Interrupted {
        /// The file.
        file: String,
    },
}
