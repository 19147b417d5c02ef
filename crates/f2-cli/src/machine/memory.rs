//! The peak memory of this process.

/// Bytes of the largest resident set so far; `None` if it is unknown.
///
/// On Linux `getrusage` may include the program that started this one; the status file does not.
#[cfg(target_os = "linux")]
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Bytes of the largest resident set so far.
#[cfg(target_vendor = "apple")]
pub(crate) fn peak_memory() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a usage through a pointer of its type; all zeros are a valid usage.
    let usage = unsafe {
        (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0).then(|| usage.assume_init())
    }?;
    u64::try_from(usage.ru_maxrss).ok()
}

/// Not known on this system.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(crate) fn peak_memory() -> Option<u64> {
    None
}
