//! Errors that name the path they are about.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct ReadError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// A file or folder that could not be written; nothing was left half-written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl ReadError {
    /// Adds the path to an error of the system.
    ///
    /// ```
    /// # use std::path::Path;
    /// let path = Path::new("absent");
    /// let error = std::fs::metadata(path).map_err(f2_files::ReadError::of(path)).unwrap_err();
    /// assert!(error.to_string().starts_with("cannot read absent: "));
    /// ```
    pub fn of(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self { path, source }
    }
}

impl WriteError {
    /// Adds the path to an error of the system.
    pub fn of(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self { path, source }
    }
}
