//! Asynchronous copies to the GPU.

use std::sync::{Mutex, PoisonError};

use super::pinned::Pinned;
use super::stream::Stream;
use crate::Error;
use crate::cuda::memory::Buffer;

/// Words that the host writes repeatedly: a page-locked copy on the host and one on the GPU.
pub(in crate::cuda) struct Upload {
    host: Pinned<u32>,
    device: Buffer<u32>,
    stream: Stream,
}

impl Upload {
    pub(in crate::cuda) fn new(stream: &Stream, words: usize) -> Result<Self, Error> {
        let (host, device) = (Pinned::new(stream, words)?, Buffer::zeroed(stream, words)?);
        Ok(Self { host, device, stream: stream.clone() })
    }

    /// The capacity in words.
    pub(in crate::cuda) fn len(&self) -> usize {
        self.device.len()
    }

    /// The address of a word on the GPU.
    pub(in crate::cuda) fn at(&self, index: usize) -> u64 {
        self.device.at(index)
    }

    /// Waits for all work, then reads the GPU's copy.
    pub(in crate::cuda) fn read(&self, to: &mut [u32]) -> Result<(), Error> {
        self.device.read(0, to)
    }

    /// Lets `fill` write the first `len` words, then starts copying them.
    pub(in crate::cuda) fn write(&mut self, len: usize, fill: impl FnOnce(&mut [u32])) {
        assert!(len <= self.len(), "{len} words exceed the capacity of {}", self.len());
        fill(&mut self.host.words_mut()[..len]);
        self.host.copy_to(self.device.at(0), len);
    }

    /// [`write`](Self::write) of a list; a buffer that is too small is replaced by a larger one.
    pub(in crate::cuda) fn write_all(&mut self, words: &[u32]) {
        if words.len() > self.len() {
            match Self::new(&self.stream, words.len().next_power_of_two()) {
                Ok(larger) => *self = larger,
                Err(error) => return self.stream.note("allocating a list", Err(error)),
            }
        }
        self.write(words.len(), |to| to.copy_from_slice(words));
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Upload({} words)", self.len())
    }
}

/// Constant lists that operations read. Each is copied once and never freed, since a recorded graph
/// may read it.
#[derive(Default)]
pub(in crate::cuda) struct Lists {
    known: Mutex<Vec<(Vec<u64>, Buffer<u64>)>>,
}

impl Lists {
    /// The address of a list on the GPU; `None`, with the failure recorded, if out of memory.
    pub(in crate::cuda) fn load(&self, stream: &Stream, list: &[u64]) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, buffer)) = known.iter().find(|(known, _)| known == list) {
            return Some(buffer.at(0));
        }
        match Buffer::zeroed(stream, list.len()) {
            Ok(buffer) => {
                if !list.is_empty() {
                    buffer.write(0, list);
                }
                let address = buffer.at(0);
                known.push((list.to_vec(), buffer));
                Some(address)
            }
            Err(error) => {
                stream.note("allocating a list", Err(error));
                None
            }
        }
    }
}
