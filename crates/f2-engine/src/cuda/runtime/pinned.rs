//! Page-locked host memory: the GPU copies from and to it while the host continues.

use std::slice;

use cudarc::driver::{result, sys};

use super::stream::Stream;
use crate::Error;
use crate::cuda::DEVICE;

/// A fixed number of words, initially zero, and the event that marks the end of their last copy.
pub(in crate::cuda) struct Pinned<T> {
    start: *mut T,
    len: usize,
    copied: sys::CUevent,
    stream: Stream,
}

/// A type for which every bit pattern is a valid value.
pub(in crate::cuda) trait Word: Copy + Default {}

impl Word for u32 {}
impl Word for f32 {}

// SAFETY: the memory is owned. The GPU accesses it only from the start of a copy, which borrows it
// exclusively, to the end, which all other accesses wait for.
unsafe impl<T: Word> Send for Pinned<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Word> Sync for Pinned<T> {}

impl<T: Word> Pinned<T> {
    pub(in crate::cuda) fn new(stream: &Stream, len: usize) -> Result<Self, Error> {
        let failed = |error: result::DriverError| Error::Failed {
            device: DEVICE,
            reason: format!("page-locked memory: {error}"),
        };
        stream.context().bind_to_thread().map_err(failed)?;
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let copied = result::event::create(flags).map_err(failed)?;
        let bytes = len.max(1) * size_of::<T>();
        // SAFETY: the memory is set below before anything reads it, and freed in `drop`.
        let start = unsafe { result::malloc_host(bytes, 0) }.map_err(failed)?.cast::<T>();
        for index in 0..len {
            // SAFETY: within the allocation, which is aligned to whole pages.
            unsafe { start.add(index).write(T::default()) };
        }
        Ok(Self { start, len, copied, stream: stream.clone() })
    }

    /// The words, after the last copy has ended.
    pub(in crate::cuda) fn words(&self) -> &[T] {
        self.wait();
        // SAFETY: no copy is in progress, and starting one needs an exclusive borrow.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    /// [`words`](Self::words), for writing.
    pub(in crate::cuda) fn words_mut(&mut self) -> &mut [T] {
        self.wait();
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Starts copying the first `len` words to the GPU.
    pub(in crate::cuda) fn copy_to(&mut self, to: u64, len: usize) {
        assert!(len <= self.len, "{} words", self.len);
        // SAFETY: the words stay in place until the event marks the end of the copy.
        let begun = unsafe {
            let words = slice::from_raw_parts(self.start, len);
            result::memcpy_htod_async(to, words, self.stream.raw())
        };
        self.mark("copying to the GPU", begun);
    }

    /// Starts copying all words from the GPU.
    pub(in crate::cuda) fn copy_from(&mut self, from: u64) {
        // SAFETY: the words stay in place until the event marks the end of the copy, and nothing
        // reads them before.
        let begun = unsafe {
            let words = slice::from_raw_parts_mut(self.start, self.len);
            result::memcpy_dtoh_async(words, from, self.stream.raw())
        };
        self.mark("copying from the GPU", begun);
    }

    fn mark(&self, what: &str, begun: Result<(), result::DriverError>) {
        self.stream.note(what, begun);
        // SAFETY: the event and the stream are alive.
        let recorded = unsafe { result::event::record(self.copied, self.stream.raw()) };
        self.stream.note("marking a copy", recorded);
    }

    fn wait(&self) {
        // SAFETY: the event was created in `new`; one never recorded is complete.
        let waited = unsafe { result::event::synchronize(self.copied) };
        self.stream.note("waiting for a copy", waited);
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: the event and the memory were made in `new` and are freed here only, after
        // the last copy has ended.
        let freed = unsafe {
            result::event::synchronize(self.copied)
                .and_then(|()| result::event::destroy(self.copied))
                .and_then(|()| result::free_host(self.start.cast()))
        };
        self.stream.note("freeing memory", freed);
    }
}
