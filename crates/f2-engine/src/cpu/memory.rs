//! Buffers aligned to cache lines, on huge pages if the system provides them.

use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Cpu;
use crate::{Error, Memory, Parameter};

/// The size of a cache line and of an AVX-512 register.
const LINE: usize = 64;
/// From this size on, a buffer is aligned to huge pages and requests them: a pass over all
/// parameters then has far fewer TLB misses.
const HUGE_PAGE: usize = 2 << 20;

/// The minimum number of bytes a thread clears: a few milliseconds of page faults.
const FEWEST_CLEARED: usize = 16 << 20;

/// A fixed number of `f32`, initially zero.
pub struct Buffer {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: the buffer owns its memory and lends it according to Rust's borrowing rules.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len });
        }
        let out_of_memory =
            || Error::OutOfMemory { device: "cpu", bytes: len.saturating_mul(size_of::<f32>()) };
        let layout = Self::layout(len).ok_or_else(out_of_memory)?;
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc(layout) };
        #[allow(clippy::cast_ptr_alignment, reason = "the layout has a larger alignment")]
        let start = NonNull::new(start.cast::<f32>()).ok_or_else(out_of_memory)?;
        // Before the first touch, which allocates the pages: `alloc_zeroed` would already have
        // touched all of them at this alignment.
        prefer_huge_pages(start, layout);
        let buffer = Self { start, len };
        // SAFETY: the range was just allocated, and the bytes may be uninitialised.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(start.as_ptr().cast::<MaybeUninit<u8>>(), layout.size())
        };
        clear(bytes);
        Ok(buffer)
    }

    fn layout(len: usize) -> Option<Layout> {
        let bytes = len.checked_mul(size_of::<f32>())?.checked_next_multiple_of(LINE)?;
        let alignment = if bytes >= HUGE_PAGE { HUGE_PAGE } else { LINE };
        Layout::from_size_align(bytes, alignment).ok()
    }
}

/// Writes zeros, on several threads: the first touch of a page is slow, above all on virtual
/// machines.
fn clear(bytes: &mut [MaybeUninit<u8>]) {
    let zero = |part: &mut [MaybeUninit<u8>]| part.fill(MaybeUninit::new(0));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = bytes.len().div_ceil(threads).max(FEWEST_CLEARED).next_multiple_of(HUGE_PAGE);
    if bytes.len() <= part {
        return zero(bytes);
    }
    let parts = Mutex::new(bytes.chunks_mut(part));
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(part) = next() {
            zero(part);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the others do its share.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

#[cfg(target_os = "linux")]
fn prefer_huge_pages(start: NonNull<f32>, layout: Layout) {
    if layout.align() == HUGE_PAGE {
        // SAFETY: the range was just allocated, and the advice does not change its content. A
        // kernel without huge pages returns an error, which only costs speed.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_: NonNull<f32>, _: Layout) {}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Some(layout), true) = (Self::layout(self.len), self.len > 0) {
            // SAFETY: allocated in `zeroed` with the same layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `len` initialised floats are owned by the buffer.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: `len` initialised floats are owned by the buffer, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Buffer({} floats)", self.len)
    }
}

impl Memory for Cpu {
    type Activations = Buffer;
    type Floats = Buffer;
    type Weights = Buffer;
    type Indices = Vec<u32>;
    type Reading = f32;

    const ACTIVATION_BYTES: usize = size_of::<f32>();
    const WEIGHT_BYTES: usize = size_of::<f32>();

    fn activations(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }

    fn floats(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }

    fn weights(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }

    fn indices(&self, len: usize) -> Result<Vec<u32>, Error> {
        Ok(vec![0; len])
    }

    fn reading(&self) -> Result<f32, Error> {
        Ok(0.0)
    }

    fn write_activations(&self, from: &[f32], to: &mut Buffer) {
        to[..from.len()].copy_from_slice(from);
    }

    fn read_activations(&self, from: &Buffer, to: &mut [f32]) -> Result<(), Error> {
        to.copy_from_slice(&from[..to.len()]);
        Ok(())
    }

    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Buffer) {
        to[offset..offset + from.len()].copy_from_slice(from);
    }

    fn read_floats(&self, from: &Buffer, offset: usize, to: &mut [f32]) -> Result<(), Error> {
        to.copy_from_slice(&from[offset..offset + to.len()]);
        Ok(())
    }

    fn host_floats<'a>(
        &self,
        from: &'a mut Buffer,
        len: usize,
        _: &'a mut Vec<f32>,
    ) -> Result<&'a mut [f32], Error> {
        Ok(&mut from[..len])
    }

    fn begin_reading(&self, from: &Buffer, to: &mut f32) {
        *to = from[0];
    }

    fn finish_reading(&self, reading: &f32) -> Result<f32, Error> {
        Ok(*reading)
    }

    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Buffer) {
        to[parameter.range()].copy_from_slice(from);
    }

    fn read_weights(
        &self,
        from: &Buffer,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error> {
        to.copy_from_slice(&from[parameter.range()]);
        Ok(())
    }

    fn write_indices(&self, from: &[u32], to: &mut Vec<u32>) {
        to.clear();
        to.extend_from_slice(from);
    }

    fn read_indices(&self, from: &Vec<u32>, to: &mut [u32]) -> Result<(), Error> {
        to.copy_from_slice(&from[..to.len()]);
        Ok(())
    }

    fn zero_activations(&self, len: usize, to: &mut Buffer) {
        to[..len].fill(0.0);
    }

    fn zero_floats(&self, to: &mut Buffer) {
        to.fill(0.0);
    }

    fn add_sum(&self, from: &Buffer, range: Range<usize>, to: &mut Buffer, index: usize) {
        to[index] += from[range].iter().copied().map(f64::from).sum::<f64>() as f32;
    }

    fn gather(&self, width: usize, rows: &Vec<u32>, from: &Buffer, to: &mut Buffer) {
        for (&row, to) in rows.iter().zip(to.chunks_mut(width)) {
            to.copy_from_slice(&from[row as usize * width..][..width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_zero_and_aligned() {
        for len in [0, 1, 17, 1 << 20, (5 << 22) + 3] {
            let buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&x| x == 0.0));
            assert!(len == 0 || (buffer.as_ptr() as usize).is_multiple_of(LINE));
        }
    }

    #[test]
    fn refuses_what_cannot_fit() {
        assert!(matches!(Buffer::zeroed(usize::MAX / 8), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Buffer::zeroed(usize::MAX), Err(Error::OutOfMemory { .. })));
    }
}
