//! Rayon's threads.

use f2_engine::check_threads;

/// Restricts rayon to the calling thread if the system refuses others: starting them would panic.
pub(crate) fn avoid_threads_if_unavailable() {
    if check_threads(rayon_threads()).is_err() {
        // The global pool is first built here, which cannot fail without new threads.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    }
}

/// The number of threads that rayon will start.
fn rayon_threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    asked.filter(|threads| *threads > 0).unwrap_or_else(super::cores)
}
