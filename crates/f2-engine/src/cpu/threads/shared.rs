//! Memory that several threads write concurrently, each its own part.

use std::marker::PhantomData;

/// A slice whose parts are written by different threads.
pub(in crate::cpu) struct Shared<'a> {
    start: *mut f32,
    len: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: callers of the methods guarantee that no two threads touch one element.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(in crate::cpu) fn new(elements: &'a mut [f32]) -> Self {
        Self { start: elements.as_mut_ptr(), len: elements.len(), borrowed: PhantomData }
    }

    pub(in crate::cpu) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::cpu) fn start(&self) -> *mut f32 {
        self.start
    }

    /// A piece of the slice.
    ///
    /// # Safety
    /// Nothing else may touch these elements while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "the caller guarantees that pieces are disjoint")]
    pub(in crate::cpu) unsafe fn piece(&self, offset: usize, len: usize) -> &mut [f32] {
        assert!(offset + len <= self.len);
        // SAFETY: within the slice, and not touched by anything else.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), len) }
    }
}
