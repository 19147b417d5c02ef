//! Asynchronous copies from the GPU.

use super::pinned::Pinned;
use super::stream::Stream;
use crate::Error;
use crate::cuda::memory::Buffer;

/// One float being copied to the host.
pub struct Reading {
    host: Pinned<f32>,
    stream: Stream,
}

impl Reading {
    pub(in crate::cuda) fn new(stream: &Stream) -> Result<Self, Error> {
        Ok(Self { host: Pinned::new(stream, 1)?, stream: stream.clone() })
    }

    pub(in crate::cuda) fn begin(&mut self, from: &Buffer<f32>) {
        self.host.copy_from(from.at(0));
    }

    pub(in crate::cuda) fn finish(&self) -> Result<f32, Error> {
        let value = self.host.words()[0];
        self.stream.check()?;
        Ok(value)
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Reading")
    }
}
