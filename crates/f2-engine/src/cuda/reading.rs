//! Copies from the GPU that nobody waits for before they are needed.

use cudarc::driver::{result, sys};

use super::memory::Buffer;
use super::stream::Stream;
use crate::Error;

/// One float: page-locked room for it, and the moment it has arrived.
pub struct Reading {
    host: *mut f32,
    done: sys::CUevent,
    stream: Stream,
}

// SAFETY: the room is owned, written by the GPU between `begin` and the event, and read after it.
unsafe impl Send for Reading {}

impl Reading {
    pub(super) fn new(stream: &Stream) -> Result<Self, Error> {
        let failed = |error: result::DriverError| Error::Failed {
            device: super::DEVICE,
            reason: format!("page-locked memory: {error}"),
        };
        // SAFETY: the memory is set before anything reads it, and freed in `drop`.
        let host = unsafe { result::malloc_host(size_of::<f32>(), 0) }.map_err(failed)?;
        let host = host.cast::<f32>();
        // SAFETY: room for one float, just allocated.
        unsafe { host.write(0.0) };
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let done = result::event::create(flags).map_err(failed)?;
        Ok(Self { host, done, stream: stream.clone() })
    }

    pub(super) fn begin(&mut self, from: &Buffer<f32>) {
        let raw = self.stream.raw();
        // SAFETY: the room stays in place until the event says that it was written, and nothing
        // reads it before.
        let copied = unsafe {
            let room = std::slice::from_raw_parts_mut(self.host, 1);
            result::memcpy_dtoh_async(room, from.at(0), raw)
        };
        self.stream.note("copying from the GPU", copied);
        // SAFETY: the event and the stream are alive.
        let recorded = unsafe { result::event::record(self.done, raw) };
        self.stream.note("marking a copy", recorded);
    }

    pub(super) fn finish(&self) -> Result<f32, Error> {
        // SAFETY: the event was created in `new`; one never recorded is complete.
        let waited = unsafe { result::event::synchronize(self.done) };
        self.stream.note("waiting for a copy", waited);
        self.stream.check()?;
        // SAFETY: the copy has ended; another begins only through an exclusive borrow.
        Ok(unsafe { self.host.read_volatile() })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // SAFETY: the event and the memory were made in `new` and are given back here only, after
        // the last copy has ended.
        let freed = unsafe {
            result::event::synchronize(self.done)
                .and_then(|()| result::event::destroy(self.done))
                .and_then(|()| result::free_host(self.host.cast()))
        };
        self.stream.note("freeing memory", freed);
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Reading")
    }
}
