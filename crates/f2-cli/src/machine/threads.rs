//! Rayon's threads.

use f2_engine::check_threads;

/// Restricts rayon to the calling thread where the system grants no others; it would panic when
/// it starts them.
pub(crate) fn avoid_threads_if_unavailable() {
    if check_threads(rayon_threads()).is_err() {
        // The pool is made here for the first time, and one without new threads cannot fail.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    }
}

/// The number that rayon will start.
fn rayon_threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    asked.filter(|threads| *threads > 0).unwrap_or_else(super::cores)
}
