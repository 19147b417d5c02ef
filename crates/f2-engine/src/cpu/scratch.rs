//! Every thread's own workspace, kept from one operation to the next.

use std::cell::RefCell;

use super::memory::Buffer;

thread_local! {
    static SCRATCH: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Lends slices of these lengths, their content left over from earlier uses.
///
/// # Panics
/// When the first use on a thread finds no memory, or when uses are nested.
pub(super) fn with_scratch<const N: usize, R>(
    lens: [usize; N],
    body: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    const LINE: usize = 16;
    let total = lens.iter().map(|len| len.next_multiple_of(LINE)).sum();
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.as_ref().is_none_or(|buffer| buffer.len() < total) {
            *scratch = None;
            *scratch = Some(Buffer::zeroed(total).expect("a thread's workspace is small"));
        }
        let mut rest: &mut [f32] = scratch.as_mut().expect("just made");
        body(lens.map(|len| {
            let (slice, after) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(LINE));
            rest = after;
            &mut slice[..len]
        }))
    })
}
