//! A second stream, on which messages go while the first one computes.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};

use crate::cuda::runtime::Stream;

/// Before everything else: messages need few of the GPU's processors, and others wait for them. The
/// driver takes the highest priority it has.
const PRIORITY: i32 = -5;

/// A second stream beside the one that computes.
pub(super) struct Side {
    stream: Arc<CudaStream>,
    /// What the first stream had to do when messages were enqueued last.
    computed: CudaEvent,
    /// What this one had to do when the first was told to wait.
    exchanged: CudaEvent,
}

impl Side {
    pub(super) fn new(first: &Stream) -> Result<Self, DriverError> {
        let context = first.context();
        Ok(Self {
            stream: context.new_stream_with_priority(PRIORITY)?,
            computed: context.new_event(None)?,
            exchanged: context.new_event(None)?,
        })
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.stream.cu_stream()
    }

    /// What is enqueued here from now on waits for all that the first stream has to do so far.
    pub(super) fn follow(&self, first: &Stream) -> Result<(), DriverError> {
        self.computed.record(first.cuda())?;
        self.stream.wait(&self.computed)
    }

    /// What is enqueued on the first stream from now on waits for all that this one has to do so far.
    pub(super) fn lead(&self, first: &Stream) -> Result<(), DriverError> {
        self.exchanged.record(&self.stream)?;
        first.cuda().wait(&self.exchanged)
    }
}
