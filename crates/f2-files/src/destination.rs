//! Where a path leads: to a file that is replaced, or to something that is written into.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::OutputFile;

/// More links than this in a row are taken for a loop, as the system does.
const MOST_LINKS: usize = 40;

/// The target of a path that is to be written.
pub(crate) enum Destination {
    /// A file, there or not, under the name that symbolic links lead to.
    File(PathBuf),
    /// A device, a pipe or a socket, which is written into.
    Stream(PathBuf),
    /// This program's own output under another name, such as `/dev/stdout`.
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

/// The name that symbolic links lead to, whether or not anything has it.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            // A relative link counts from its own folder.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links lead on from there"))
}

/// Standard output or error, where that is what was found under a path. Opening it anew would
/// start from its beginning; going through the handle keeps what was written before.
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
