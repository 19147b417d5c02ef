//! Errors between ranks. Each names the rank or the variable at fault.

/// An error between ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The launcher's variables are missing or contradict each other.
    #[error("{reason}")]
    Launch {
        /// Which, and why.
        reason: String,
    },
    /// Rank 0 cannot listen for the others.
    #[error("rank 0 cannot listen at {address}: {reason}")]
    Listen {
        /// Where.
        address: String,
        /// The system's answer.
        reason: String,
    },
    /// Rank 0 was not found.
    #[error("rank {rank} did not reach rank 0 at {address} within {seconds} seconds: {reason}")]
    Unreachable {
        /// The rank that tried.
        rank: usize,
        /// Where rank 0 should be.
        address: String,
        /// The time limit.
        seconds: u64,
        /// The last answer.
        reason: String,
    },
    /// Some ranks did not come.
    #[error("rank {} of {size} did not come to {address} within {seconds} seconds", list(missing))]
    Absent {
        /// Those that did not.
        missing: Vec<usize>,
        /// How many there should be.
        size: usize,
        /// Where they were expected.
        address: String,
        /// The time limit.
        seconds: u64,
    },
    /// The process of a rank cannot be started.
    #[error("cannot start a process for rank {rank}: {reason}")]
    Start {
        /// The rank.
        rank: usize,
        /// The system's answer.
        reason: String,
    },
    /// The process of a rank ended before it met the others.
    #[error("rank {rank} ended before it met the others: {status}")]
    Ended {
        /// The rank.
        rank: usize,
        /// How, as the system names it.
        status: String,
    },
    /// A rank cannot have the threads it listens with.
    #[error("rank {rank} cannot start a thread: {reason}")]
    Threads {
        /// The rank.
        rank: usize,
        /// The system's answer.
        reason: String,
    },
    /// The connection to a rank ended, or nothing came over it.
    #[error("rank {rank} is lost: {reason}")]
    Lost {
        /// The rank.
        rank: usize,
        /// How the loss was detected.
        reason: String,
    },
    /// A rank ended with an error of its own.
    #[error("rank {rank} failed: {reason}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its error.
        reason: String,
    },
    /// A rank was started differently.
    #[error("rank {rank} differs from rank 0 in {what}: {found} instead of {expected}")]
    Different {
        /// The rank.
        rank: usize,
        /// The name of the value that differs.
        what: String,
        /// The rank's value.
        found: String,
        /// That of rank 0.
        expected: String,
    },
}

fn list(ranks: &[usize]) -> String {
    ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
