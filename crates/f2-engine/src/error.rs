/// What a device may refuse or fail to do.
///
/// Operations return nothing: a device may run them long after they were asked for. What went
/// wrong in between is told by the next call that waits for results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An allocation did not fit.
    #[error("the {device} has no room for another {bytes} bytes")]
    OutOfMemory {
        /// The device, in words.
        device: &'static str,
        /// The size of the allocation that failed.
        bytes: usize,
    },
    /// The threads that share the work could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The operating system's answer.
        reason: String,
    },
    /// The device failed while running an operation.
    #[error("the {device} failed: {reason}")]
    Failed {
        /// The device, in words.
        device: &'static str,
        /// What the driver says.
        reason: String,
    },
}
