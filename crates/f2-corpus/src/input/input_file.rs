//! Input files: their format and compression by name, and the search through folders.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use f2_files::ReadError;

use crate::error::{Error, Result};

/// The format of a file, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Plain text.
    Text,
    /// Wikitext as published: tokenised, with articles under headings.
    Wikitext,
    /// One JSON object per line.
    JsonLines,
    /// A table with a text column.
    Parquet,
}

/// The compression of a file, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// One file to read text from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
}

impl InputFile {
    /// A file named by the user; plain text unless its extension says otherwise.
    pub(crate) fn file(path: &Path) -> Self {
        Self::recognise(path).unwrap_or_else(|| Self {
            path: path.to_path_buf(),
            format: Format::Text,
            compression: compression_of(path).0,
        })
    }

    /// The file, if its extension is that of a text format.
    fn recognise(path: &Path) -> Option<Self> {
        let (compression, inner) = compression_of(path);
        let format = match extension(&inner)?.as_str() {
            "txt" | "text" | "raw" => Format::Text,
            "tokens" => Format::Wikitext,
            "jsonl" | "ndjson" => Format::JsonLines,
            "parquet" if compression == Compression::None => Format::Parquet,
            _ => return None,
        };
        Some(Self { path: path.to_path_buf(), format, compression })
    }

    /// Size of the file on disk, for progress.
    pub(crate) fn size(&self) -> Result<u64> {
        Ok(fs::metadata(&self.path).map_err(ReadError::of(&self.path))?.len())
    }
}

/// The compression according to the name, and the name without that suffix.
fn compression_of(path: &Path) -> (Compression, PathBuf) {
    let compression = match extension(path).as_deref() {
        Some("gz") => Compression::Gzip,
        Some("zst" | "zstd") => Compression::Zstd,
        _ => return (Compression::None, path.to_path_buf()),
    };
    (compression, path.with_extension(""))
}

fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

/// The files that the user named: files as they are, folders by the text files in them, sorted by
/// path so that a corpus does not depend on the order in which a file system lists them.
pub(crate) fn resolve(paths: &[PathBuf]) -> Result<Vec<InputFile>> {
    let mut sources = Vec::new();
    for path in paths {
        if fs::metadata(path).map_err(ReadError::of(path))?.is_dir() {
            let found = sources.len();
            walk(path, &mut HashSet::new(), &mut sources)?;
            if sources.len() == found {
                return Err(Error::NothingToRead { path: path.clone() });
            }
        } else {
            sources.push(InputFile::file(path));
        }
    }
    Ok(sources)
}

/// Walks through a folder recursively. Folders that symbolic links lead back to are visited once;
/// anything but regular files, such as pipes, is skipped, since it might never end.
fn walk(folder: &Path, seen: &mut HashSet<PathBuf>, sources: &mut Vec<InputFile>) -> Result<()> {
    if !seen.insert(folder.canonicalize().map_err(ReadError::of(folder))?) {
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(ReadError::of(folder))? {
        entries.push(entry.map_err(ReadError::of(folder))?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, seen, sources)?;
        } else if path.is_file() {
            sources.extend(InputFile::recognise(&path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(name: &str) -> (Format, Compression) {
        let source = InputFile::file(Path::new(name));
        (source.format, source.compression)
    }

    #[test]
    fn names_tell_format_and_packing() {
        assert_eq!(recognised("a.txt"), (Format::Text, Compression::None));
        assert_eq!(recognised("wiki.train.tokens"), (Format::Wikitext, Compression::None));
        assert_eq!(recognised("wiki.test.tokens.zst"), (Format::Wikitext, Compression::Zstd));
        assert_eq!(recognised("c4.jsonl.GZ"), (Format::JsonLines, Compression::Gzip));
        assert_eq!(recognised("train-00.parquet"), (Format::Parquet, Compression::None));
        assert_eq!(recognised("NOTES.md"), (Format::Text, Compression::None));
        assert_eq!(recognised("book.gz"), (Format::Text, Compression::Gzip));
    }

    #[test]
    fn folders_give_their_text_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["c.txt", "b/z.jsonl", "a.txt.gz", "image.png"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = resolve(&[folder.path().to_path_buf()]).unwrap();
        let names: Vec<_> =
            found.iter().map(|source| source.path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, ["a.txt.gz", "b/z.jsonl", "c.txt"].map(Path::new));
    }

    #[cfg(unix)]
    #[test]
    fn circles_of_links_and_pipes_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("a.txt"), "").unwrap();
        for link in ["one", "two"] {
            std::os::unix::fs::symlink("..", inner.join(link)).unwrap();
        }
        let pipe = folder.path().join("pipe.txt");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let found = resolve(&[folder.path().to_path_buf()]).unwrap();
        let paths: Vec<_> = found.iter().map(|source| &source.path).collect();
        assert_eq!(paths, [&inner.join("a.txt")]);
    }

    #[test]
    fn a_folder_without_text_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = resolve(&[folder.path().to_path_buf()]).unwrap_err();
        assert!(matches!(error, Error::NothingToRead { .. }), "{error}");
    }
}
