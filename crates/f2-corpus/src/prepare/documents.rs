//! The documents of all inputs, in batches for the threads that work on them.

use std::path::Path;

use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use super::spread::Spreading;
use crate::error::{Error, Result};
use crate::input::{Digest, DocumentReader, InputFile, Reading};
use crate::split::Split;
use crate::tokenizer::pretokens::independent_parts;

/// Bytes of text in a batch: enough to keep a thread busy, few enough to hold several batches in
/// memory.
const BATCH: usize = 1 << 20;

/// A document, or a part of a long one.
#[derive(Debug)]
pub(crate) struct DocumentPart {
    pub(crate) split: Split,
    pub(crate) text: String,
    pub(crate) begins_document: bool,
    pub(crate) ends_document: bool,
}

/// The documents of one file, as [`prepare`](super::prepare) would find them.
pub fn documents(
    path: &Path,
    options: &Options,
) -> Result<impl Iterator<Item = Result<String>> + use<>> {
    let mut reader = DocumentReader::open(&InputFile::file(path), &options.reading())?;
    Ok(std::iter::from_fn(move || reader.next_document().transpose()))
}

/// Reads the planned files and yields their documents in batches.
pub(crate) struct Batches<'a> {
    plan: std::slice::Iter<'a, Planned>,
    current: Option<Current<'a>>,
    reading: Reading,
    spreading: Spreading,
    /// Whether long documents may be cut.
    cut: bool,
    observer: &'a dyn Observer,
    digests: &'a mut Vec<Digest>,
    /// Parts of a long document left for the next batch.
    waiting: std::collections::VecDeque<DocumentPart>,
}

/// The file that is being read.
struct Current<'a> {
    reader: DocumentReader,
    planned: &'a Planned,
    /// Bytes of its documents so far.
    read: u64,
}

impl<'a> Batches<'a> {
    /// `digests` receives one entry per file, in the order of the plan.
    pub(crate) fn new(
        options: &Options,
        plan: &'a [Planned],
        spreading: Spreading,
        cut: bool,
        observer: &'a dyn Observer,
        digests: &'a mut Vec<Digest>,
    ) -> Self {
        // A pair is never cut: its separator must stay whole.
        let cut = cut && options.pairs.is_none();
        let reading = options.reading();
        let waiting = std::collections::VecDeque::new();
        let plan = plan.iter();
        Self { plan, current: None, reading, spreading, cut, observer, digests, waiting }
    }

    fn batch(&mut self) -> Result<Vec<DocumentPart>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH {
            if self.waiting.is_empty() && !self.read_document()? {
                break;
            }
            if let Some(part) = self.waiting.pop_front() {
                bytes += part.text.len();
                batch.push(part);
            }
        }
        if let Some(Current { reader, .. }) = &mut self.current {
            self.observer.advance(reader.newly_read());
        }
        if self.observer.interrupted() { Err(Error::Interrupted) } else { Ok(batch) }
    }

    /// Reads one document; false if all files have been read.
    fn read_document(&mut self) -> Result<bool> {
        loop {
            let Some(Current { reader, planned, read }) = &mut self.current else {
                let Some(planned) = self.plan.next() else { return Ok(false) };
                let reader = DocumentReader::open(&planned.source, &self.reading)?;
                self.current = Some(Current { reader, planned, read: 0 });
                continue;
            };
            if let Some(document) = reader.next_document()? {
                let start = *read;
                *read += document.len() as u64;
                if planned.range.contains(&start) {
                    let before = planned.measured.map_or(0, |measured| measured.before);
                    let place = || self.spreading.place(&document, before + start);
                    let split = planned.split.unwrap_or_else(place);
                    self.waiting.extend(parts(document, split, self.cut));
                    return Ok(true);
                }
                // Many documents may be skipped before one is taken.
                if start / BATCH as u64 != *read / BATCH as u64 {
                    self.observer.advance(reader.newly_read());
                    if self.observer.interrupted() {
                        return Err(Error::Interrupted);
                    }
                }
                continue;
            }
            self.observer.advance(reader.newly_read());
            self.digests.push(reader.digest()?);
            self.current = None;
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Vec<DocumentPart>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batch() {
            Ok(batch) if batch.is_empty() => None,
            outcome => Some(outcome),
        }
    }
}

fn parts(document: String, split: Split, cut: bool) -> Vec<DocumentPart> {
    if !cut || document.len() <= 2 * BATCH {
        return vec![DocumentPart {
            split,
            text: document,
            begins_document: true,
            ends_document: true,
        }];
    }
    let texts = independent_parts(&document, BATCH);
    let last = texts.len() - 1;
    let part = |(index, text): (usize, &str)| DocumentPart {
        split,
        text: text.to_owned(),
        begins_document: index == 0,
        ends_document: index == last,
    };
    texts.into_iter().enumerate().map(part).collect()
}
