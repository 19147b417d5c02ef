use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::claim::make_and_claim;
use crate::disk::{self, OutputFile};
use crate::leftover::{sweep_siblings, temporary_sibling};
use crate::{ReadError, WriteError};

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(ReadError::of(path))
}

/// Writes `path` so that a reader sees its old content or the whole new one, nothing between.
///
/// `write` fills a temporary file in the same folder, which is synced and then renamed over
/// `path`. When anything fails the temporary file is removed and `path` is left as it was; what
/// killed writers of `path` left is removed, too.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts.json");
/// f2_files::write_atomically(&path, |out| std::io::Write::write_all(out, b"[3, 2, 1]"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "[3, 2, 1]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> Result<(), WriteError> {
    sweep_siblings(path);
    let temporary = temporary_sibling(path);
    // The file is ours until it has its name: nobody may take it for a leftover.
    let written =
        write_and_sync(&temporary, write).and_then(|_claimed| disk::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one worth reporting; a leftover is harmless.
        let _ = disk::remove_file(&temporary);
    }
    written.and_then(|()| sync_parent(path)).map_err(WriteError::of(path))
}

/// [`write_atomically`] for content that is at hand.
pub fn write_text_atomically(path: &Path, text: &str) -> Result<(), WriteError> {
    write_atomically(path, |out| out.write_all(text.as_bytes()))
}

/// Whether `path` could be written now: what would fail after hours of work is told before them.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let temporary = temporary_sibling(path);
    let tried = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        OutputFile::create(&temporary).and_then(|_| disk::remove_file(&temporary))
    };
    tried.map_err(WriteError::of(path))
}

fn write_and_sync(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> io::Result<OutputFile> {
    let file = make_and_claim(path, || OutputFile::create(path), OutputFile::file)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync()?;
    Ok(file)
}

/// Makes a rename in `path`'s folder durable. Folders cannot be synced everywhere; where they
/// cannot, the file system orders renames itself.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if cfg!(unix) { disk::sync(parent) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classes.json");
        write_text_atomically(&path, "old").unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(b"half of the n")?;
            Err(io::Error::other("disk full"))
        });
        let said = failed.unwrap_err().to_string();
        assert_eq!(said, format!("cannot write {}: disk full", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["classes.json"]);
    }

    #[test]
    fn what_can_be_written_is_known_before_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("samples.jsonl")).unwrap();
        assert!(names(folder.path()).is_empty());
        let absent = check_writable(&folder.path().join("absent/samples.jsonl"));
        assert_eq!(absent.unwrap_err().source.kind(), io::ErrorKind::NotFound);
        let taken = check_writable(folder.path());
        assert_eq!(taken.unwrap_err().source.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn replaces_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classes.json");
        write_text_atomically(&path, "a long first version").unwrap();
        write_text_atomically(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(folder.path()), ["classes.json"]);
    }
}
