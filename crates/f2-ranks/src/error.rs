//! Errors between ranks; each names the rank or variable at fault.

/// An error between ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The launcher's variables are missing or contradict each other.
    #[error("{reason}")]
    Launch {
        /// The variable, and the reason.
        reason: String,
    },
    /// Rank 0 cannot listen for the others.
    #[error("rank 0 cannot listen at {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        reason: String,
    },
    /// Rank 0 was not found.
    #[error("rank {rank} did not reach rank 0 at {address} within {seconds} seconds: {reason}")]
    Unreachable {
        /// The rank that tried.
        rank: usize,
        /// Rank 0's address.
        address: String,
        /// The time limit.
        seconds: u64,
        /// The last error.
        reason: String,
    },
    /// Some ranks did not connect in time.
    #[error(
        "rank {} of {size} did not connect to {address} within {seconds} seconds",
        list(missing)
    )]
    Absent {
        /// Their numbers.
        missing: Vec<usize>,
        /// The expected number of ranks.
        size: usize,
        /// Rank 0's address.
        address: String,
        /// The time limit.
        seconds: u64,
    },
    /// The process of a rank could not be started.
    #[error("cannot start a process for rank {rank}: {reason}")]
    Start {
        /// The rank.
        rank: usize,
        /// The system's error.
        reason: String,
    },
    /// The process of a rank ended before it connected.
    #[error("rank {rank} ended before it met the others: {status}")]
    Ended {
        /// The rank.
        rank: usize,
        /// Its exit status.
        status: String,
    },
    /// A rank could not start the threads for its connections.
    #[error("rank {rank} cannot start a thread: {reason}")]
    Threads {
        /// The rank.
        rank: usize,
        /// The system's error.
        reason: String,
    },
    /// The connection to a rank was closed, or nothing was received on it.
    #[error("rank {rank} is lost: {reason}")]
    Lost {
        /// The rank.
        rank: usize,
        /// How this was detected.
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
        /// Rank 0's value.
        expected: String,
    },
}

fn list(ranks: &[usize]) -> String {
    ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
