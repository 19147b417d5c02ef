//! Rayon's threads.

use std::thread::{self, Builder};

/// Restricts rayon to the calling thread where the system grants no others; it would panic when
/// it starts them.
pub(crate) fn avoid_threads_if_unavailable() {
    if !can_start(rayon_threads()) {
        // The pool is made here for the first time, and one without new threads cannot fail.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    }
}

/// The number that rayon will start.
fn rayon_threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    asked.filter(|threads| *threads > 0).unwrap_or_else(super::cores)
}

/// Whether this many threads can run at the same time.
pub(crate) fn can_start(threads: usize) -> bool {
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map_while(|_| Builder::new().spawn_scoped(scope, thread::park).ok())
            .collect();
        running.iter().for_each(|thread| thread.thread().unpark());
        running.len() == threads
    })
}
