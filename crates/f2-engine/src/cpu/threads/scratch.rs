//! Thread-local workspaces, reused by successive operations.

use std::cell::RefCell;

use crate::cpu::memory::Buffer;

thread_local! {
    static WORKSPACE: RefCell<Option<Buffer>> = const { RefCell::new(None) };
    static PACKING: RefCell<Option<Buffer>> = const { RefCell::new(None) };
    static SHARED: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Calls `body` with slices of these lengths, whose content is left over from earlier uses.
///
/// # Panics
/// If memory runs out, or if uses are nested.
pub(in crate::cpu) fn with_scratch<const N: usize, R>(
    lens: [usize; N],
    body: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    WORKSPACE.with_borrow_mut(|buffer| body(slices(buffer, lens)))
}

/// [`with_scratch`] for the packed copies of a matrix product, which may run inside it.
pub(in crate::cpu) fn with_packing<const N: usize, R>(
    lens: [usize; N],
    body: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    PACKING.with_borrow_mut(|buffer| body(slices(buffer, lens)))
}

/// [`with_scratch`] for packed copies shared by all threads; the thread that owns them may use
/// [`with_packing`] inside.
pub(in crate::cpu) fn with_shared<R>(len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
    SHARED.with_borrow_mut(|buffer| {
        let [shared] = slices(buffer, [len]);
        body(shared)
    })
}

fn slices<const N: usize>(buffer: &mut Option<Buffer>, lens: [usize; N]) -> [&mut [f32]; N] {
    const LINE: usize = 16;
    let total = lens.iter().map(|len| len.next_multiple_of(LINE)).sum();
    if buffer.as_ref().is_none_or(|buffer| buffer.len() < total) {
        *buffer = None;
        *buffer = Some(Buffer::zeroed(total).expect("a thread's workspace is small"));
    }
    let mut rest: &mut [f32] = buffer.as_mut().expect("just made");
    lens.map(|len| {
        let (slice, after) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(LINE));
        rest = after;
        &mut slice[..len]
    })
}
