//! Whether the system grants threads, for libraries that panic where it does not.

use std::io;
use std::thread::{self, Builder};

/// Starts this many threads at the same time and ends them; the error is that of the first one that the
/// system refuses.
pub fn check_threads(count: usize) -> io::Result<()> {
    thread::scope(|scope| {
        let mut running = Vec::new();
        let started = (0..count).try_for_each(|_| {
            running.push(Builder::new().spawn_scoped(scope, thread::park)?);
            Ok(())
        });
        running.iter().for_each(|thread| thread.thread().unpark());
        started
    })
}
