//! Files that are replaced as a whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::WriteError;
use crate::claim::make_and_claim;
use crate::destination::Destination;
use crate::disk::{self, OutputFile};
use crate::leftover::{Writers, sweep_siblings, temporary_sibling};

/// Writes `path` so that a reader sees either its old content or the complete new content.
///
/// `write` fills a temporary file in the same folder, which is synced and then renamed over
/// `path`. If anything fails, the temporary file is removed and `path` is unchanged; leftovers of
/// killed writers of `path` are removed, too. If `path` is a symbolic link, its target is
/// replaced; a pipe or a device is written to directly.
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
    let written = Destination::of(path).and_then(|destination| match destination {
        Destination::File(path) => replace(&path, write),
        Destination::Stream(path) => {
            let stream = OutputFile::open(&path, File::options().write(true))?;
            write_through(stream, write).map(drop)
        }
        Destination::OwnOutput(output) => write_through(output, write).map(drop),
    });
    written.map_err(WriteError::of(path))
}

/// Replaces a file, or creates it.
fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> io::Result<()> {
    sweep_siblings(path, Writers::Here);
    let (temporary, file) = make_and_claim(
        || temporary_sibling(path),
        OutputFile::create_new,
        |made| Some(made.file()),
    )?;
    // The file stays claimed until it has its final name, so that it is not swept as a leftover.
    let written = write_and_sync(file, write).and_then(|_claimed| disk::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one worth reporting; a leftover is harmless.
        let _ = disk::remove_file(&temporary);
    }
    written.and_then(|()| sync_parent(path))
}

/// [`write_atomically`] for text in memory.
pub fn write_text_atomically(path: &Path, text: &str) -> Result<(), WriteError> {
    write_atomically(path, |out| out.write_all(text.as_bytes()))
}

/// Checks that `path` can be written, before hours of work rather than after them.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let tried = Destination::of(path).and_then(|destination| match destination {
        Destination::File(path) => {
            let temporary = temporary_sibling(&path);
            OutputFile::create_new(&temporary).and_then(|_| disk::remove_file(&temporary))
        }
        // Opening a pipe would wait for its reader.
        Destination::Stream(_) | Destination::OwnOutput(_) => Ok(()),
    });
    tried.map_err(WriteError::of(path))
}

fn write_and_sync(
    file: OutputFile,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> io::Result<OutputFile> {
    let file = write_through(file, write)?;
    file.sync()?;
    Ok(file)
}

/// Writes everything and returns the file.
fn write_through(
    file: OutputFile,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> io::Result<OutputFile> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Makes a rename in `path`'s folder durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    disk::sync(parent)
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    /// As two processes with the same id would, in containers that share a disk.
    #[test]
    fn two_writers_of_one_path_do_not_touch_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        write_atomically(&path, |out| {
            out.write_all(b"the first half, ")?;
            out.flush()?;
            check_writable(&path).unwrap();
            write_text_atomically(&path, "the other's").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "the other's");
            out.write_all(b"the second")
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "the first half, the second");
        assert_eq!(names(folder.path()), ["samples.jsonl"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_and_its_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("kept/classes.json"), folder.path().join("link"));
        fs::create_dir(folder.path().join("kept")).unwrap();
        std::os::unix::fs::symlink("kept/classes.json", &link).unwrap();
        for text in ["a file that was not there yet", "another"] {
            check_writable(&link).unwrap();
            write_text_atomically(&link, text).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(write_text_atomically(&circle, "nowhere").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_into() {
        use std::os::unix::fs::FileTypeExt as _;

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        check_writable(&pipe).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_text_atomically(&pipe, "through the pipe").unwrap();
        assert_eq!(reader.join().unwrap(), "through the pipe");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
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
