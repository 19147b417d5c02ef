//! Buffers in the GPU's memory, and parameters with their rounded copies.

use std::marker::PhantomData;
use std::ops::Range;

use cudarc::driver::result;
use cudarc::driver::sys::CUresult;

use crate::cuda::runtime::Stream;
use crate::cuda::{DEVICE, Precision};
use crate::{Error, Parameter};

/// The size of a buffer is a multiple of this many bytes, so that vector accesses need no special
/// case at its end.
const GRAIN: usize = 256;

/// A fixed number of `T`, initially zero.
pub struct Buffer<T> {
    start: u64,
    len: usize,
    stream: Stream,
    element: PhantomData<T>,
}

impl<T: Copy> Buffer<T> {
    pub(in crate::cuda) fn zeroed(stream: &Stream, len: usize) -> Result<Self, Error> {
        let bytes = len
            .max(1)
            .checked_mul(size_of::<T>())
            .ok_or(Error::OutOfMemory { device: DEVICE, bytes: usize::MAX })?;
        let bytes = bytes.next_multiple_of(GRAIN);
        let failed = |error: result::DriverError| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory { device: DEVICE, bytes },
            _ => Error::Failed { device: DEVICE, reason: error.to_string() },
        };
        stream.context().bind_to_thread().map_err(failed)?;
        stream.count_operation();
        // SAFETY: the size is above zero; the memory is set below.
        let start = unsafe { result::malloc_sync(bytes) }.map_err(failed)?;
        let buffer = Self { start, len, stream: stream.clone(), element: PhantomData };
        // SAFETY: the range was just allocated.
        unsafe { result::memset_d8_async(start, 0, bytes, stream.raw()) }.map_err(failed)?;
        Ok(buffer)
    }

    pub(in crate::cuda) fn len(&self) -> usize {
        self.len
    }

    /// The address of an element.
    pub(in crate::cuda) fn at(&self, index: usize) -> u64 {
        debug_assert!(index <= self.len);
        self.start + (index * size_of::<T>()) as u64
    }

    /// Copies from the host; the source may be dropped at once, since pageable memory is copied
    /// before the driver returns.
    pub(in crate::cuda) fn write(&self, offset: usize, from: &[T]) {
        assert!(offset + from.len() <= self.len, "a buffer of {} elements", self.len);
        self.stream.count_operation();
        // SAFETY: the range lies in this buffer.
        let copied = unsafe { result::memcpy_htod_async(self.at(offset), from, self.stream.raw()) };
        self.stream.note("copying to the GPU", copied);
    }

    /// Waits for all work, then copies to the host.
    pub(in crate::cuda) fn read(&self, offset: usize, to: &mut [T]) -> Result<(), Error> {
        assert!(offset + to.len() <= self.len, "a buffer of {} elements", self.len);
        // SAFETY: the range lies in this buffer, and `to` outlives the wait below.
        let copied = unsafe { result::memcpy_dtoh_async(to, self.at(offset), self.stream.raw()) };
        self.stream.note("copying from the GPU", copied);
        self.stream.synchronise()
    }

    pub(in crate::cuda) fn zero(&self, range: Range<usize>) {
        assert!(range.end <= self.len, "a buffer of {} elements", self.len);
        if range.is_empty() {
            return;
        }
        self.stream.count_operation();
        let bytes = range.len() * size_of::<T>();
        // SAFETY: the range lies in this buffer.
        let set =
            unsafe { result::memset_d8_async(self.at(range.start), 0, bytes, self.stream.raw()) };
        self.stream.note("zeroing", set);
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let freed = self.stream.context().bind_to_thread().and_then(|()| {
            // SAFETY: allocated in `zeroed`, freed here only; the driver waits for pending
            // accesses.
            unsafe { result::free_sync(self.start) }
        });
        self.stream.note("freeing memory", freed);
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Buffer({} elements)", self.len)
    }
}

/// Parameters: the values themselves, and the rounded copy that matrix products read.
pub struct Weights<P: Precision> {
    pub(in crate::cuda) values: Buffer<f32>,
    /// `None` if the working precision is `f32`.
    pub(in crate::cuda) rounded: Option<Buffer<P::Element>>,
}

impl<P: Precision> Weights<P> {
    /// The address of a parameter's values.
    pub(in crate::cuda) fn value(&self, parameter: Parameter) -> u64 {
        self.values.at(parameter.offset)
    }

    /// The address of a parameter in working precision.
    pub(in crate::cuda) fn real(&self, parameter: Parameter) -> u64 {
        match &self.rounded {
            Some(rounded) => rounded.at(parameter.offset),
            None => self.value(parameter),
        }
    }
}

impl<P: Precision> std::fmt::Debug for Weights<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Weights({} parameters)", self.values.len())
    }
}
