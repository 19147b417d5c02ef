//! The load of the processor.

/// The mean number of threads that ran or waited for a core over the last minute; `None` if it is
/// unknown.
#[cfg(unix)]
pub(crate) fn load() -> Option<f64> {
    let mut minutes = [0.0; 3];
    // SAFETY: the call writes at most three numbers, and the array holds three.
    let written = unsafe { libc::getloadavg(minutes.as_mut_ptr(), 3) };
    (written > 0).then_some(minutes[0])
}

/// Not known on this system.
#[cfg(not(unix))]
pub(crate) fn load() -> Option<f64> {
    None
}
