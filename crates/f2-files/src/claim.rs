//! Claims of a running process on a file, by the locks of the operating system, which end with the
//! process, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The owner of a file or folder.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The caller, from now on.
    Ours,
    /// Another running process.
    Taken,
    /// Unknown: the file system has no locks.
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

/// Makes a file or folder under a new name and claims it. Another process may have swept it as a
/// leftover before it was claimed; then it is made again, under another name.
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

/// Whether an open file is still the one under a name.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |about: io::Result<fs::Metadata>| about.ok().map(|it| (it.dev(), it.ino()));
    let at_path = identity(fs::symlink_metadata(path));
    at_path.is_some() && identity(file.metadata()) == at_path
}

/// Whether an open file is still the one under a name.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    fs::exists(path).unwrap_or(false)
}
