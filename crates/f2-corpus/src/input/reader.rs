//! The documents of one input file, whatever its format.

use super::documents::Boundaries;
use super::input_file::{Format, InputFile};
use super::jsonl::JsonLinesFile;
use super::open::Digest;
use super::parquet::ParquetFile;
use super::text::TextFile;
use crate::error::{Error, Result};
use crate::pairs::Pairs;

/// How to find documents in files.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) boundaries: Boundaries,
    /// The field or column that holds the text of a record.
    pub(crate) field: String,
    /// Read pairs of fields instead of one.
    pub(crate) pairs: Option<Pairs>,
    /// Replace invalid UTF-8 instead of refusing it.
    pub(crate) lossy: bool,
    /// The limit of a document, or of a line that holds one, in bytes.
    pub(crate) longest: u64,
}

/// The documents of one file, in order.
pub(crate) struct DocumentReader {
    file: OpenFile,
    /// Bytes of the file already reported as read.
    reported: u64,
}

enum OpenFile {
    Text(TextFile),
    JsonLines(JsonLinesFile),
    Parquet(Box<ParquetFile>),
}

impl DocumentReader {
    pub(crate) fn open(source: &InputFile, reading: &Reading) -> Result<Self> {
        let file = match source.format {
            Format::Parquet if reading.pairs.is_some() => {
                return Err(Error::PairsOfParquet { path: source.path.clone() });
            }
            // Regardless of the name: standard input has none.
            _ if reading.pairs.is_some() => {
                OpenFile::JsonLines(JsonLinesFile::new(source, reading)?)
            }
            Format::Text | Format::Wikitext => OpenFile::Text(TextFile::new(source, reading)?),
            Format::JsonLines => OpenFile::JsonLines(JsonLinesFile::new(source, reading)?),
            Format::Parquet => OpenFile::Parquet(Box::new(ParquetFile::new(source, reading)?)),
        };
        Ok(Self { file, reported: 0 })
    }

    pub(crate) fn next_document(&mut self) -> Result<Option<String>> {
        match &mut self.file {
            OpenFile::Text(file) => file.next_document(),
            OpenFile::JsonLines(file) => file.next_document(),
            OpenFile::Parquet(file) => file.next_document(),
        }
    }

    /// Bytes of the file read since the last call, for progress.
    pub(crate) fn newly_read(&mut self) -> u64 {
        let position = match &self.file {
            OpenFile::Text(file) => file.opened().position(),
            OpenFile::JsonLines(file) => file.opened().position(),
            OpenFile::Parquet(file) => file.position(),
        };
        let new = position - self.reported;
        self.reported = position;
        new
    }

    /// The digest of the file, to be taken once it has been read to the end.
    pub(crate) fn digest(&self) -> Result<Digest> {
        match &self.file {
            OpenFile::Text(file) => Ok(file.opened().digest()),
            OpenFile::JsonLines(file) => Ok(file.opened().digest()),
            OpenFile::Parquet(file) => file.digest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(path: &Path, lossy: bool) -> Result<Vec<String>> {
        let field = "text".to_owned();
        let boundaries = Boundaries::Auto;
        let reading = Reading { boundaries, field, pairs: None, lossy, longest: 99 };
        let mut reader = DocumentReader::open(&InputFile::file(path), &reading)?;
        let mut documents = Vec::new();
        while let Some(document) = reader.next_document()? {
            documents.push(document);
        }
        Ok(documents)
    }

    fn read_bytes(name: &str, bytes: &[u8], lossy: bool) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read(&path, lossy)
    }

    fn refused(name: &str, bytes: &[u8]) -> String {
        read_bytes(name, bytes, false).unwrap_err().to_string()
    }

    #[test]
    fn text_with_a_mark_and_dos_line_ends() {
        let documents = read_bytes("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree", false);
        assert_eq!(documents.unwrap(), ["one\ntwo\n", "three\n"]);
    }

    #[test]
    fn the_byte_that_is_not_utf8_is_named() {
        let message = refused("a.txt", b"\xef\xbb\xbfgood\nb\xc3\xa9 \xff bad\n");
        assert!(message.ends_with("invalid UTF-8 at byte 12 of the text"), "{message}");
        let replaced = read_bytes("a.txt", b"a\xffb", true).unwrap();
        assert_eq!(replaced, ["a\u{fffd}b\n"]);
    }

    #[test]
    fn json_lines_give_their_field() {
        let lines = b"{\"text\": \"a\\nb\", \"id\": 1}\n\n{\"text\": \"  \"}\n{\"text\":\"c\\n\"}";
        assert_eq!(read_bytes("a.jsonl", lines, false).unwrap(), ["a\nb\n", "c\n"]);
    }

    #[test]
    fn a_bad_json_line_is_named() {
        let message = refused("a.jsonl", b"{\"text\":\"a\"}\n{\"text\":");
        assert!(message.contains("a.jsonl, line 2: broken JSON"), "{message}");
        let message = refused("a.jsonl", b"{\"body\":\"a\", \"id\": 3}");
        let reason = "line 1: there is no field \"text\"; there are \"body\", \"id\"";
        assert!(message.contains(reason), "{message}");
        let message = refused("a.jsonl", b"[\"a\"]");
        assert!(message.contains("line 1: this is not an object"), "{message}");
        let message = refused("a.jsonl", b"{\"text\":3}");
        assert!(message.contains("line 1: the field \"text\" is not a string"), "{message}");
    }

    #[test]
    fn a_mark_before_json_lines_is_dropped() {
        let documents = read_bytes("a.jsonl", b"\xef\xbb\xbf{\"text\": \"a\"}\n", false);
        assert_eq!(documents.unwrap(), ["a\n"]);
    }

    #[test]
    fn a_document_without_end_is_refused() {
        let bomb = zstd::encode_all(vec![0; 1 << 20].as_slice(), 0).unwrap();
        for (name, bytes) in [
            ("zeros.txt.zst", bomb.as_slice()),
            ("line.txt", &[b'a'; 101]),
            ("lines.txt", &b"a line\n".repeat(20)),
            ("a.jsonl", format!("{{\"text\": \"{}\"}}", "a".repeat(99)).as_bytes()),
        ] {
            let message = refused(name, bytes);
            assert!(message.ends_with("a document has more than 99 bytes"), "{message}");
        }
        assert_eq!(read_bytes("line.txt", &[b'a'; 98], false).unwrap()[0].len(), 99);
    }

    #[test]
    fn a_truncated_archive_is_named() {
        let whole = zstd::encode_all("some text\n\n".repeat(1000).as_bytes(), 0).unwrap();
        let message = refused("a.txt.zst", &whole[..whole.len() - 4]);
        assert!(message.contains("a.txt.zst: the compressed data is cut short"), "{message}");
    }
}
