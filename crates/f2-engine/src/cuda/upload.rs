//! Copies to the GPU that nobody waits for.

use std::sync::{Mutex, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::memory::Buffer;
use super::stream::Stream;
use crate::Error;

/// Words written by the host again and again: a page-locked copy, the GPU's own, and the moment
/// the one has become the other.
pub(super) struct Upload {
    host: *mut u32,
    done: sys::CUevent,
    device: Buffer<u32>,
    stream: Stream,
}

// SAFETY: the host's copy is owned, and only touched through exclusive borrows.
unsafe impl Send for Upload {}
// SAFETY: shared access reads nothing of the host's copy.
unsafe impl Sync for Upload {}

impl Upload {
    pub(super) fn new(stream: &Stream, words: usize) -> Result<Self, Error> {
        let device = Buffer::zeroed(stream, words)?;
        let failed = |error: result::DriverError| Error::Failed {
            device: super::DEVICE,
            reason: format!("page-locked memory: {error}"),
        };
        let bytes = words.max(1) * size_of::<u32>();
        // SAFETY: the memory is written before it is read, and freed in `drop`.
        let host = unsafe { result::malloc_host(bytes, 0) }.map_err(failed)?.cast::<u32>();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let done = result::event::create(flags).map_err(failed)?;
        Ok(Self { host, done, device, stream: stream.clone() })
    }

    /// How many words there is room for.
    pub(super) fn len(&self) -> usize {
        self.device.len()
    }

    /// The GPU's address of a word.
    pub(super) fn at(&self, index: usize) -> u64 {
        self.device.at(index)
    }

    /// Waits for all work, then reads the GPU's copy.
    pub(super) fn read(&self, to: &mut [u32]) -> Result<(), Error> {
        self.device.read(0, to)
    }

    /// Lets `fill` write the first `len` words, then copies them.
    pub(super) fn write(&mut self, len: usize, fill: impl FnOnce(&mut [u32])) {
        assert!(len <= self.len(), "room for {} words", self.len());
        // SAFETY: the event was created in `new`; one never recorded is complete.
        let waited = unsafe { result::event::synchronize(self.done) };
        self.stream.note("waiting for a copy", waited);
        // SAFETY: `len` words of the allocation, exclusively borrowed, and no copy reads them now.
        // Words that were never written are zero or old, any value being a valid one.
        let words = unsafe { std::slice::from_raw_parts_mut(self.host, len) };
        fill(words);
        let raw = self.stream.raw();
        // SAFETY: the words stay in place until the event says that they were copied.
        let copied = unsafe { result::memcpy_htod_async(self.device.at(0), words, raw) };
        self.stream.note("copying to the GPU", copied);
        // SAFETY: the event and the stream are alive.
        let recorded = unsafe { result::event::record(self.done, raw) };
        self.stream.note("marking a copy", recorded);
    }

    /// [`write`](Self::write) of a list, in a larger buffer where this one is too small.
    pub(super) fn write_all(&mut self, words: &[u32]) {
        if words.len() > self.len() {
            match Self::new(&self.stream, words.len().next_power_of_two()) {
                Ok(larger) => *self = larger,
                Err(error) => return self.stream.note("room for a list", Err(error)),
            }
        }
        self.write(words.len(), |to| to.copy_from_slice(words));
    }
}

impl Drop for Upload {
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

impl std::fmt::Debug for Upload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Upload({} words)", self.len())
    }
}

/// Lists that operations read again and again, each copied once and kept, since a recorded graph may
/// read it.
#[derive(Default)]
pub(super) struct Lists {
    known: Mutex<Vec<(Vec<u64>, Buffer<u64>)>>,
}

impl Lists {
    /// The GPU's address of a list; none, with a failure noted, where memory is out.
    pub(super) fn load(&self, stream: &Stream, list: &[u64]) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, buffer)) = known.iter().find(|(known, _)| known == list) {
            return Some(buffer.at(0));
        }
        match Buffer::zeroed(stream, list.len()) {
            Ok(buffer) => {
                buffer.write(0, list);
                let address = buffer.at(0);
                known.push((list.to_vec(), buffer));
                Some(address)
            }
            Err(error) => {
                stream.note("room for a list", Err(error));
                None
            }
        }
    }
}
