//! Files in a folder that somebody else may have made.

use std::fs;
use std::io;
use std::path::Path;

use crate::ReadError;

/// Returns the path if it leads to a regular file; symbolic links are followed.
///
/// Opening a pipe would wait for a writer, and a device may have no end. Files that a user names
/// may be either; files merely found in a folder may not.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("counts.json");
/// std::fs::write(&path, "[3, 2, 1]")?;
/// let text = f2_files::read_text(f2_files::regular_file(&path)?)?;
/// assert_eq!(text, "[3, 2, 1]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn regular_file(path: &Path) -> Result<&Path, ReadError> {
    let about = fs::metadata(path).map_err(ReadError::of(path))?;
    if about.is_file() {
        return Ok(path);
    }
    let kind = if about.is_dir() { "a folder" } else { "a pipe or a device" };
    Err(ReadError::of(path)(io::Error::other(format!("it is {kind}, not a regular file"))))
}

/// Whether this is a single plain name, which cannot lead out of the folder it is looked up in.
///
/// ```
/// assert!(f2_files::is_file_name("counts.json"));
/// for name in ["", "..", "/dev/zero", "../counts.json", "a/counts.json", "counts.json/"] {
///     assert!(!f2_files::is_file_name(name), "{name}");
/// }
/// ```
pub fn is_file_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|last| last == name)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_folders_are_refused_and_links_to_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", at("zeros")).unwrap();
        for (name, kind) in [("pipe", "a pipe"), ("zeros", "a device"), ("", "a folder")] {
            let refused = regular_file(&at(name)).unwrap_err().to_string();
            assert!(refused.contains("it is a") && refused.contains(kind), "{refused}");
        }
        fs::write(at("file"), "here").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        assert_eq!(regular_file(&at("link")).unwrap(), at("link"));
        let absent = regular_file(&at("absent")).unwrap_err();
        assert_eq!(absent.source.kind(), io::ErrorKind::NotFound);
    }
}
