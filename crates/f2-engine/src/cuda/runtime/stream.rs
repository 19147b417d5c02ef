//! The stream on which the operations of a device are enqueued, and its first failure.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};

use crate::Error;
use crate::cuda::DEVICE;

/// The oldest compute capability whose tensor cores support bf16.
const OLDEST_CAPABILITY: (i32, i32) = (8, 0);

/// A stream of one GPU. Operations return nothing; the first failure is reported by the next call
/// that waits.
#[derive(Clone)]
pub(in crate::cuda) struct Stream {
    cuda: Arc<CudaStream>,
    failure: Arc<Mutex<Option<String>>>,
    /// The number of operations enqueued so far.
    enqueued: Arc<AtomicU64>,
}

/// Checks for a driver and a GPU; the error says what is missing.
pub(in crate::cuda) fn find_driver() -> Result<(), Error> {
    // SAFETY: loading the driver runs its initialisers, as in every CUDA program.
    if !unsafe { sys::is_culib_present() } {
        return Err(failed("there is no NVIDIA driver (libcuda.so.1 was not found)"));
    }
    cudarc::driver::result::init().map_err(failed)?;
    match CudaContext::device_count().map_err(failed)? {
        0 => Err(failed("the NVIDIA driver sees no GPU")),
        _ => Ok(()),
    }
}

fn failed(reason: impl Display) -> Error {
    Error::Failed { device: DEVICE, reason: reason.to_string() }
}

impl Stream {
    pub(in crate::cuda) fn open(ordinal: usize) -> Result<Self, Error> {
        find_driver()?;
        let count = CudaContext::device_count().map_err(failed)?;
        if ordinal >= count as usize {
            return Err(failed(format!("there is no GPU {ordinal}; the driver sees {count}")));
        }
        let context = CudaContext::new(ordinal).map_err(failed)?;
        let capability = context.compute_capability().map_err(failed)?;
        if capability < OLDEST_CAPABILITY {
            let (major, minor) = capability;
            return Err(failed(format!(
                "GPU {ordinal} has compute capability {major}.{minor}; 8.0 or later is needed"
            )));
        }
        // SAFETY: it orders accesses to cudarc's own slices, which are not used. The second stream
        // of the exchange is ordered by explicit events.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed)?;
        Ok(Self { cuda: stream, failure: Arc::default(), enqueued: Arc::default() })
    }

    pub(in crate::cuda) fn context(&self) -> &Arc<CudaContext> {
        self.cuda.context()
    }

    pub(in crate::cuda) fn raw(&self) -> sys::CUstream {
        self.cuda.cu_stream()
    }

    pub(in crate::cuda) fn cuda(&self) -> &Arc<CudaStream> {
        &self.cuda
    }

    pub(in crate::cuda) fn capability(&self) -> Result<(i32, i32), Error> {
        self.context().compute_capability().map_err(failed)
    }

    /// The most shared memory a block can have on request, in bytes.
    pub(in crate::cuda) fn shared_memory(&self) -> Result<i32, Error> {
        let attribute =
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        self.context().attribute(attribute).map_err(failed)
    }

    pub(in crate::cuda) fn multiprocessors(&self) -> Result<usize, Error> {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        Ok(self.context().attribute(attribute).map_err(failed)? as usize)
    }

    pub(in crate::cuda) fn model(&self) -> Result<String, Error> {
        self.context().name().map_err(failed)
    }

    pub(in crate::cuda) fn available_memory(&self) -> Result<u64, Error> {
        let (free, _) = self.context().mem_get_info().map_err(failed)?;
        Ok(free as u64)
    }

    /// Counts an operation that may write to a buffer.
    pub(in crate::cuda) fn count_operation(&self) {
        self.enqueued.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of operations enqueued so far.
    pub(in crate::cuda) fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Relaxed)
    }

    /// Records a failure for the next call that waits, unless there was one before.
    pub(in crate::cuda) fn note<E: Display>(&self, what: &str, result: Result<(), E>) {
        if let Err(error) = result {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("{what}: {error}"));
        }
    }

    /// Waits for all operations and reports the first failure.
    pub(in crate::cuda) fn synchronise(&self) -> Result<(), Error> {
        let waited: Result<(), DriverError> = self.cuda.synchronize();
        self.note("waiting for the GPU", waited);
        self.check()
    }

    /// The first failure so far.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Restores an earlier record of failures.
    pub(super) fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Reports the first failure so far.
    pub(in crate::cuda) fn check(&self) -> Result<(), Error> {
        match self.failure() {
            Some(reason) => Err(failed(reason)),
            None => Ok(()),
        }
    }
}
