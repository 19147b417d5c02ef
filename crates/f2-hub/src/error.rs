use std::path::PathBuf;

/// Why something of the hub cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub has no such names.
    #[error("`{name}` names nothing on the Hugging Face hub: {reason}")]
    Name {
        /// What was given.
        name: String,
        /// What a name looks like.
        reason: &'static str,
    },
    /// It is not in the cache, and nothing may be fetched.
    #[error("{repository} is not in the cache {}, and {reason}", cache.display())]
    NotCached {
        /// What was asked for.
        repository: String,
        /// Where it was looked for.
        cache: PathBuf,
        /// Why it was not fetched.
        reason: &'static str,
    },
    /// The hub refuses it or does not have it.
    #[error("{endpoint} does not give {repository}: {reason} (status {status})")]
    Refused {
        /// The hub.
        endpoint: String,
        /// What was asked for.
        repository: String,
        /// What its status means.
        reason: &'static str,
        /// Its status.
        status: u16,
    },
    /// It has nothing of what was asked for.
    #[error("{repository} has nothing of what was asked for")]
    NothingWanted {
        /// The repository.
        repository: String,
    },
    /// The hub cannot be reached, or the connection is lost again and again.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// The hub.
        endpoint: String,
        /// What the system said.
        reason: String,
    },
    /// The hub does not speak as it should.
    #[error("{url} answers with {reason}")]
    Answer {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// What arrived is not what was announced.
    #[error(
        "{file} of {repository} arrived damaged: its hash is {found}, the hub announced {announced}"
    )]
    Damaged {
        /// What was asked for.
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
    /// The user stopped it.
    #[error("stopped while {file} was being fetched")]
    Interrupted {
        /// The file.
        file: String,
    },
}
