//! The destination of an output path: a file that is replaced, or a stream that is written to.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::OutputFile;

/// More links in a row than this are treated as a loop, as by the operating system.
const MOST_LINKS: usize = 40;

/// The target of an output path.
pub(crate) enum Destination {
    /// A file, which may not exist yet, after resolving symbolic links.
    File(PathBuf),
    /// A device, a pipe or a socket, which is written to directly.
    Stream(PathBuf),
    /// This program's own standard output or error under another name, such as `/dev/stdout`.
    OwnOutput(OutputFile),
}

impl Destination {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) => {
                if let Some(output) = own_output(&found) {
                    return Ok(Self::OwnOutput(OutputFile::around(output, path)));
                }
                if !found.is_file() {
                    return Ok(Self::Stream(path.to_path_buf()));
                }
            }
        }
        Ok(Self::File(followed(path)?))
    }
}

/// The path that symbolic links resolve to; it need not exist.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            // A relative target starts at the folder of the link.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Standard output or error, if that is the file found. Opening it again would write from its
/// beginning; its existing handle keeps what was written before.
#[cfg(unix)]
fn own_output(found: &Metadata) -> Option<File> {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;

    let outputs =
        [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let same = |output: &File| {
        output.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    };
    outputs.into_iter().flatten().map(File::from).find(same)
}

#[cfg(not(unix))]
fn own_output(_found: &Metadata) -> Option<File> {
    None
}
