//! Changes to the disk go through here, so that tests can make any of them fail.
//!
//! The functions are those of [`std::fs`], with a [`fault`] that debug builds can inject.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::fault;

/// A file that is being written.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
}

impl OutputFile {
    /// Creates an empty file, or truncates an existing one.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, File::options().read(true).write(true).create(true).truncate(true))
    }

    /// Creates an empty file; fails if the path exists.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::open(path, File::options().read(true).write(true).create_new(true))
    }

    /// Opens an existing file to change it in place.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        Self::open(path, File::options().read(true).write(true))
    }

    /// Opens a file to append to it, or creates it.
    pub fn append(path: &Path) -> io::Result<Self> {
        Self::open(path, File::options().read(true).append(true).create(true))
    }

    pub(crate) fn open(path: &Path, options: &fs::OpenOptions) -> io::Result<Self> {
        fault::may_strike("open", path)?;
        Ok(Self { file: options.open(path)?, path: path.to_path_buf() })
    }

    /// Wraps a file that is already open; `path` is the name the caller used.
    pub(crate) fn around(file: File, path: &Path) -> Self {
        Self { file, path: path.to_path_buf() }
    }

    /// Waits until the content is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        fault::may_strike("sync", &self.path)?;
        self.file.sync_all()
    }

    /// The underlying file, to be read or mapped.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full disk or a killed writer leaves only the first part of the data.
        fault::may_strike_after("write", &self.path, || {
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]);
        })?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Writes a file with this content.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    OutputFile::create(path)?.write_all(content.as_ref())
}

/// Copies the content of a file, but not its permissions.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut OutputFile::create(to)?).map(drop)
}

/// Waits until a file, or the entries of a folder, are on the disk. Only Unix can sync folders;
/// elsewhere the file system orders renames itself.
pub fn sync(path: &Path) -> io::Result<()> {
    if !cfg!(unix) && path.is_dir() {
        return Ok(());
    }
    fault::may_strike("sync", path)?;
    // Windows flushes through handles that may write, Unix through any.
    File::options().read(true).write(!cfg!(unix)).open(path)?.sync_all()
}

/// Renames a file or folder, replacing a file or an empty folder of the new name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fault::may_strike("rename", to)?;
    fs::rename(from, to)
}

/// Creates a folder; fails if the path exists.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fault::may_strike("create", path)?;
    fs::create_dir(path)
}

/// Creates a folder and its missing parents; does nothing if the folder exists.
pub fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fault::may_strike("create", path)?;
    fs::create_dir_all(path)
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    fault::may_strike("remove", path)?;
    fs::remove_file(path)
}

/// Removes a folder and its contents.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    fault::may_strike("remove", path)?;
    fs::remove_dir_all(path)
}
