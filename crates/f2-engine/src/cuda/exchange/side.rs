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
    /// The end of the first stream's work when messages were enqueued last.
    computed: CudaEvent,
    /// The end of this stream's work when the first was told to wait.
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

    /// Makes all later work on this stream wait for the work enqueued on the first stream so far.
    pub(super) fn follow(&self, first: &Stream) -> Result<(), DriverError> {
        self.computed.record(first.cuda())?;
        self.stream.wait(&self.computed)
    }

    /// Makes all later work on the first stream wait for the work enqueued on this one so far.
    pub(super) fn lead(&self, first: &Stream) -> Result<(), DriverError> {
        self.exchanged.record(&self.stream)?;
        first.cuda().wait(&self.exchanged)
    }
}
