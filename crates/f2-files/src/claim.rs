//! Claims of a running process on a file: locks of the operating system, which end with the
//! process, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The result of claiming a file or folder.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It belongs to the caller from now on.
    Ours,
    /// It belongs to another running process.
    Taken,
    /// Its owner is unknown: the file system has no locks.
    Unknown,
}

/// Claims an open file.
pub(crate) fn claim(file: &File) -> Claim {
    match file.try_lock() {
        Ok(()) => Claim::Ours,
        Err(TryLockError::WouldBlock) => Claim::Taken,
        Err(TryLockError::Error(_)) => Claim::Unknown,
    }
}

/// Creates a file or folder under a new name and claims it. If another process removes it as a
/// leftover before it is claimed, it is created again under another name.
pub(crate) fn make_and_claim<T>(
    name: impl Fn() -> PathBuf,
    make: impl Fn(&Path) -> io::Result<T>,
    file: impl Fn(&T) -> Option<&File>,
) -> io::Result<(PathBuf, T)> {
    loop {
        let path = name();
        let made = make(&path)?;
        let Some(file) = file(&made) else { return Ok((path, made)) };
        match claim(file) {
            Claim::Unknown => return Ok((path, made)),
            Claim::Ours if is_at(file, &path) => return Ok((path, made)),
            Claim::Ours | Claim::Taken => std::thread::yield_now(),
        }
    }
}

/// Whether a path still refers to this open file.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |about: io::Result<fs::Metadata>| about.ok().map(|it| (it.dev(), it.ino()));
    let at_path = identity(fs::symlink_metadata(path));
    at_path.is_some() && identity(file.metadata()) == at_path
}

/// Whether the path exists: the standard library cannot identify open files here.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    fs::exists(path).unwrap_or(false)
}
