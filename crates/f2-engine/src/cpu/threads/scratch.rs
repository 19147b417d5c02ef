//! Every thread's own workspace, reused from one operation to the next.

use std::cell::RefCell;

use crate::cpu::memory::Buffer;

thread_local! {
    static WORKSPACE: RefCell<Option<Buffer>> = const { RefCell::new(None) };
    static PACKING: RefCell<Option<Buffer>> = const { RefCell::new(None) };
    static SHARED: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Lends an operation slices of these lengths, their content left over from earlier uses.
///
/// # Panics
/// When the first use on a thread finds no memory, or when uses are nested.
pub(in crate::cpu) fn with_scratch<const N: usize, R>(
    lens: [usize; N],
    body: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    WORKSPACE.with_borrow_mut(|buffer| body(slices(buffer, lens)))
}

/// [`with_scratch`] for the copies a matrix product makes, which may happen within.
pub(in crate::cpu) fn with_packing<const N: usize, R>(
    lens: [usize; N],
    body: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    PACKING.with_borrow_mut(|buffer| body(slices(buffer, lens)))
}

/// [`with_scratch`] for a copy that one thread makes for all, and multiplies by itself, too.
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
