//! A check that threads can be started, for use before libraries that panic if they cannot.

use std::io;
use std::thread::{self, Builder};

/// Checks that this many threads can run at the same time by starting and ending them. Returns the
/// error of the first that cannot be started.
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
