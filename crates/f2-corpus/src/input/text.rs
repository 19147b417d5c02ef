//! Documents of plain text files, and the lines they consist of.

use std::io::{BufRead as _, Read as _};

use super::documents::{Boundaries, Documents};
use super::input_file::{Format, InputFile};
use super::open::{Opened, reading_failed};
use super::reader::Reading;
use crate::error::{Error, Result};

/// Documents of a plain text file.
pub(crate) struct TextFile {
    lines: Lines,
    documents: Documents,
    finished: bool,
}

impl TextFile {
    pub(crate) fn new(source: &InputFile, reading: &Reading) -> Result<Self> {
        let boundaries = match (reading.boundaries, source.format) {
            (Boundaries::Auto, Format::Wikitext) => Boundaries::Articles,
            (boundaries, _) => boundaries,
        };
        let lines = Lines::new(source, reading)?;
        Ok(Self { lines, documents: Documents::new(boundaries), finished: false })
    }

    pub(crate) fn next_document(&mut self) -> Result<Option<String>> {
        while !self.finished {
            if self.documents.pending() as u64 > self.lines.longest {
                return Err(self.lines.too_long());
            }
            let document = match self.lines.next_line()? {
                Some(line) => self.documents.line(line),
                None => {
                    self.finished = true;
                    self.documents.finish()
                }
            };
            if document.is_some() {
                return Ok(document);
            }
        }
        Ok(None)
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.lines.opened
    }
}

/// Lines of a file as UTF-8, without their line breaks.
pub(crate) struct Lines {
    pub(crate) opened: Opened,
    source: InputFile,
    lossy: bool,
    buffer: Vec<u8>,
    replaced: String,
    /// Offset in the text at which the next line starts.
    offset: u64,
    /// The limit of a line, and of a document, in bytes.
    longest: u64,
}

impl Lines {
    pub(crate) fn new(source: &InputFile, reading: &Reading) -> Result<Self> {
        let opened = Opened::new(source)?;
        let (buffer, replaced) = (Vec::new(), String::new());
        let (lossy, longest) = (reading.lossy, reading.longest);
        Ok(Self { opened, source: source.clone(), lossy, buffer, replaced, offset: 0, longest })
    }

    fn too_long(&self) -> Error {
        Error::DocumentTooLong { path: self.source.path.clone(), longest: self.longest }
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<&str>> {
        self.buffer.clear();
        let read =
            (&mut self.opened.text).take(self.longest + 1).read_until(b'\n', &mut self.buffer);
        let length = read.map_err(|error| reading_failed(&self.source, error))?;
        if length == 0 {
            return Ok(None);
        }
        if length as u64 > self.longest {
            return Err(self.too_long());
        }
        let start = self.offset;
        self.offset += length as u64;
        let line = without_break(&self.buffer, start == 0);
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(_) if self.lossy => {
                self.replaced = String::from_utf8_lossy(line).into_owned();
                Ok(Some(&self.replaced))
            }
            Err(error) => {
                let skipped =
                    self.buffer.as_ptr_range().start.addr().abs_diff(line.as_ptr().addr());
                let offset = start + (skipped + error.valid_up_to()) as u64;
                Err(Error::InvalidUtf8 { path: self.source.path.clone(), offset })
            }
        }
    }
}

/// A line without its break, and without the byte order mark if it is the first.
fn without_break(line: &[u8], first: bool) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
}
