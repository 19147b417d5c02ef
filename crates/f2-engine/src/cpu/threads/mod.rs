//! The threads that share the work of an operation, and their scratch and shared memory.

mod available;
mod scratch;
mod shared;
mod team;

use std::ops::Range;

use team::Team;

pub use available::check_threads;
pub(super) use scratch::{with_packing, with_scratch, with_shared};
pub(super) use shared::Shared;

use crate::Error;

/// Tasks per thread: more than one, so that faster threads can take more of them.
const SHARES: usize = 4;

/// A fixed set of threads.
#[derive(Debug)]
pub(super) struct Threads(Team);

impl Threads {
    pub(super) fn new(count: usize) -> Result<Self, Error> {
        Team::new(count).map(Self)
    }

    pub(super) fn count(&self) -> usize {
        self.0.count()
    }

    /// Runs `task(0)`, …, `task(tasks - 1)`, each once, on any thread, in any order.
    pub(super) fn each(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.0.run(tasks, &task);
    }

    /// Splits `0..len` into pieces of at most `most` that get shorter towards the end, down to
    /// `least`. Their lengths are multiples of `least`, except that of the last.
    pub(super) fn dwindling(&self, len: usize, least: usize, most: usize) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < len {
            let share = (len - start) / (2 * self.count());
            let piece = share.next_multiple_of(least).clamp(least, most);
            pieces.push(start..len.min(start + piece));
            start += piece;
        }
        pieces
    }

    /// Splits `0..len` into up to [`SHARES`] pieces per thread, at multiples of `grain`. Pieces are
    /// at least `least` long unless that would leave threads idle.
    pub(super) fn shares(&self, len: usize, grain: usize, least: usize) -> Vec<Range<usize>> {
        let even = len.div_ceil(self.count());
        let shares = if self.count() == 1 { 1 } else { SHARES };
        let piece = even.div_ceil(shares).max(least.min(even)).next_multiple_of(grain).max(grain);
        (0..len).step_by(piece).map(|start| start..len.min(start + piece)).collect()
    }

    /// Splits every slice into chunks of the given size and calls `task(i, …)` with chunk `i` of
    /// each.
    pub(super) fn zip_chunks<const N: usize>(
        &self,
        outputs: [(&mut [f32], usize); N],
        task: impl Fn(usize, [&mut [f32]; N]) + Sync,
    ) {
        let tasks = outputs.iter().map(|(slice, size)| slice.len().div_ceil(*size)).max();
        let outputs = outputs.map(|(slice, size)| (slice.len(), size, Shared::new(slice)));
        self.each(tasks.unwrap_or(0), |index| {
            let chunk = |slot: usize| {
                let (len, size, shared) = &outputs[slot];
                let start = (index * size).min(*len);
                // SAFETY: every index is used by one call only, and chunks do not overlap.
                unsafe { shared.piece(start, *size.min(&(len - start))) }
            };
            task(index, std::array::from_fn(chunk));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_dwindle_and_cover_everything_once() {
        let threads = Threads::new(2).unwrap();
        let pieces = threads.dwindling(500, 24, 96);
        let lens: Vec<usize> = pieces.iter().map(Range::len).collect();
        assert_eq!(lens, [96, 96, 96, 72, 48, 24, 24, 24, 20]);
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(threads.dwindling(5, 24, 96), std::slice::from_ref(&(0..5)));
        assert!(threads.dwindling(0, 24, 96).is_empty());
    }

    #[test]
    fn shares_are_as_many_as_their_length_allows() {
        let threads = Threads::new(2).unwrap();
        assert_eq!(threads.shares(1024, 16, 64).len(), 8);
        assert_eq!(threads.shares(256, 16, 64), [0..64, 64..128, 128..192, 192..256]);
        assert_eq!(threads.shares(40, 16, 64), [0..32, 32..40]);
        assert!(threads.shares(0, 16, 64).is_empty());
        let alone = Threads::new(1).unwrap().shares(1024, 16, 64);
        assert_eq!(alone, std::slice::from_ref(&(0..1024)));
    }

    #[test]
    fn chunks_of_one_index_meet() {
        let threads = Threads::new(2).unwrap();
        let (mut wide, mut narrow) = (vec![0.0; 14], vec![0.0; 5]);
        threads.zip_chunks([(&mut wide, 6), (&mut narrow, 2)], |index, [wide, narrow]| {
            wide.fill(index as f32);
            narrow.fill(index as f32);
        });
        assert_eq!(wide[5..8], [0.0, 1.0, 1.0]);
        assert_eq!(narrow, [0.0, 0.0, 1.0, 1.0, 2.0]);
    }
}
