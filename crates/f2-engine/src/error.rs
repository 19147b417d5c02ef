//! Errors of devices.

/// An error of a device.
///
/// Operations return nothing, since a device may run them long after they were enqueued. The next
/// call that waits for results reports earlier failures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An allocation did not fit.
    #[error("{} has no memory left for another {bytes} bytes", spoken(device))]
    OutOfMemory {
        /// The device, by its name.
        device: &'static str,
        /// The size of the allocation that failed.
        bytes: usize,
    },
    /// The threads that share the work could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number of threads requested.
        threads: usize,
        /// The operating system's answer.
        reason: String,
    },
    /// `F2_SIMD` names an instruction set that is unknown or unavailable.
    #[error("F2_SIMD is {value:?}, but this processor has {available}")]
    Simd {
        /// The value of the variable.
        value: String,
        /// The instruction sets to choose from.
        available: String,
    },
    /// The processor has no instructions for bf16.
    #[error("products in bf16 need AMX or AVX512_BF16; the CPU works with {simd} here")]
    NoBf16 {
        /// The instruction set in use.
        simd: &'static str,
    },
    /// A message between ranks was not delivered.
    #[error("the exchange between ranks failed: {reason}")]
    Exchange {
        /// The failure, and the rank.
        reason: String,
    },
    /// The device cannot be opened, or failed while running an operation.
    #[error("cannot use {}: {reason}", spoken(device))]
    Failed {
        /// The device, by its name.
        device: &'static str,
        /// The driver's message.
        reason: String,
    },
}

/// The device's name as part of a sentence.
fn spoken(device: &str) -> &str {
    match device {
        "cpu" => "the CPU",
        "cuda" => "the GPU",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names_that_can_be_read() {
        let error = Error::Failed { device: "cuda", reason: "there is no driver".to_owned() };
        assert_eq!(error.to_string(), "cannot use the GPU: there is no driver");
        let error = Error::OutOfMemory { device: "cpu", bytes: 8 };
        assert_eq!(error.to_string(), "the CPU has no memory left for another 8 bytes");
    }
}
