//! A second stream, on which messages are exchanged while the first one computes.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};

use crate::cuda::runtime::Stream;

/// Above all computation: messages need few of the GPU's multiprocessors, and other ranks wait for
/// them. The driver clamps this to the highest priority it supports.
const PRIORITY: i32 = -5;

/// A second stream beside the one that computes.
pub(super) struct Side {
    stream: Arc<CudaStream>,
    /// Marks the work on the first stream that the latest messages wait for.
    computed: CudaEvent,
    /// Marks the messages that the first stream waits for.
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
