//! The threads that share an operation's work.

use std::ops::Range;

use rayon::prelude::*;

use super::shared::Shared;
use crate::Error;

/// Pieces of work a thread gets to choose from.
const SHARES: usize = 4;

/// A fixed set of threads.
#[derive(Debug)]
pub(super) struct Threads {
    pool: rayon::ThreadPool,
    count: usize,
}

impl Threads {
    pub(super) fn new(count: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|index| format!("f2-engine-{index}"))
            .build()
            .map_err(|error| Error::Threads { threads: count, reason: error.to_string() })?;
        Ok(Self { pool, count })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Runs `task(0)`, …, `task(tasks - 1)`, each once, on any thread, in any order.
    pub(super) fn each(&self, tasks: usize, task: impl Fn(usize) + Sync + Send) {
        if tasks <= 1 || self.count == 1 {
            (0..tasks).for_each(task);
        } else {
            self.pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(task));
        }
    }

    /// Cuts `0..len` into at most one piece per thread, at multiples of `grain`.
    pub(super) fn pieces(&self, len: usize, grain: usize) -> Vec<Range<usize>> {
        let piece = len.div_ceil(self.count).next_multiple_of(grain).max(grain);
        (0..len).step_by(piece).map(|start| start..len.min(start + piece)).collect()
    }

    /// Cuts `0..len` into up to [`SHARES`] pieces per thread, at multiples of `grain`; where there
    /// is enough for all threads, none is shorter than `least`.
    pub(super) fn shares(&self, len: usize, grain: usize, least: usize) -> Vec<Range<usize>> {
        let even = len.div_ceil(self.count);
        let shares = if self.count == 1 { 1 } else { SHARES };
        let piece = even.div_ceil(shares).max(least.min(even)).next_multiple_of(grain).max(grain);
        (0..len).step_by(piece).map(|start| start..len.min(start + piece)).collect()
    }

    /// Runs `task` on every chunk of every slice: chunk `i` of all of them goes to one call.
    pub(super) fn zip_chunks<const N: usize>(
        &self,
        outputs: [(&mut [f32], usize); N],
        task: impl Fn(usize, [&mut [f32]; N]) + Sync + Send,
    ) {
        let tasks = outputs.iter().map(|(slice, size)| slice.len().div_ceil(*size)).max();
        let outputs = outputs.map(|(slice, size)| (slice.len(), size, Shared::new(slice)));
        self.each(tasks.unwrap_or(0), |index| {
            let chunk = |slot: usize| {
                let (len, size, shared) = &outputs[slot];
                let start = (index * size).min(*len);
                // SAFETY: every index is given to one call only, and chunks do not overlap.
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
    fn pieces_cover_everything_once() {
        let threads = Threads::new(3).unwrap();
        assert_eq!(threads.pieces(100, 16), [0..48, 48..96, 96..100]);
        assert_eq!(threads.pieces(5, 16), std::slice::from_ref(&(0..5)));
        assert!(threads.pieces(0, 16).is_empty());
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
