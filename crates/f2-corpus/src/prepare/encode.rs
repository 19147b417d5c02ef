//! Encoding: documents to tokens on disk, and the counts of the training split.

use std::path::Path;

use super::documents::{Batches, DocumentPart};
use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use super::place;
use super::spread::Spreading;
use super::texts::TextWriter;
use crate::error::{Error, Result};
use crate::input::Digest;
use crate::manifest::SplitSize;
use crate::parallel;
use crate::shard::{ShardShape, SplitWriter};
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Encoder, Tokenizer};

/// The text as tokens with the tokenizer's own ids, on disk but for the headers.
pub(crate) struct Encoded {
    pub(crate) writers: Vec<SplitWriter>,
    pub(crate) sizes: Vec<SplitSize>,
    /// Occurrences of each id in the training split.
    pub(crate) count_of_id: Vec<u64>,
    pub(crate) digests: Vec<Digest>,
}

/// A part of a document, and its tokens.
struct EncodedPart {
    part: DocumentPart,
    ids: Vec<u32>,
    words: u64,
    /// Tokens at the beginning that are no text: the start symbol is given, never predicted.
    uncounted: usize,
}

/// Encodes all documents and counts the tokens of the training split.
pub(crate) fn encode(
    options: &Options,
    plan: &[Planned],
    spreading: Spreading,
    tokenizer: &Tokenizer,
    folder: &Path,
    observer: &dyn Observer,
) -> Result<Encoded> {
    let marks = Marks::new(options, tokenizer)?;
    let shape = ShardShape { vocabulary: tokenizer.vocabulary_size(), limit: options.shard_tokens };
    let mut encoded = Encoded::begin(shape, folder)?;
    let mut texts = TextWriter::create(options, folder)?;
    let cut = tokenizer.encoder().takes_parts();
    observer.stage("encoding", total_bytes(plan)?);
    let mut digests = Vec::new();
    parallel::in_order(
        options.threads,
        Batches::new(options, plan, spreading, cut, observer, &mut digests),
        || tokenizer.encoder(),
        |encoder, batch| batch.into_iter().map(|part| encode_part(encoder, part, marks)).collect(),
        |parts: Vec<EncodedPart>| {
            parts.iter().try_for_each(|part| {
                texts.take(&part.part)?;
                encoded.take(part)
            })
        },
    )?;
    texts.finish()?;
    Ok(Encoded { digests, ..encoded })
}

/// The tokens around every document.
#[derive(Clone, Copy)]
struct Marks {
    start: Option<u32>,
    end: Option<u32>,
}

impl Marks {
    fn new(options: &Options, tokenizer: &Tokenizer) -> Result<Self> {
        if !options.marks_documents() {
            return Ok(Self { start: None, end: None });
        }
        let id = tokenizer.token_id(END_OF_TEXT).ok_or_else(|| Error::Tokenizer {
            origin: options.tokenizer.describe(),
            reason: format!("there is no token {END_OF_TEXT} to mark documents with"),
        })?;
        let mark = |wanted: bool| wanted.then_some(id);
        Ok(Self { start: mark(options.start_of_text), end: mark(options.end_of_text) })
    }
}

fn encode_part(encoder: &mut Encoder, part: DocumentPart, marks: Marks) -> Result<EncodedPart> {
    let mut ids = Vec::with_capacity(part.text.len() / 3);
    let start = marks.start.filter(|_| part.begins_document);
    ids.extend(start);
    encoder.encode(&part.text, &mut ids)?;
    if part.ends_document {
        ids.extend(marks.end);
    }
    let words = part.text.split_whitespace().count() as u64;
    Ok(EncodedPart { part, ids, words, uncounted: usize::from(start.is_some()) })
}

impl Encoded {
    pub(crate) fn begin(shape: ShardShape, folder: &Path) -> Result<Self> {
        let create = |split| SplitWriter::create(folder, split, shape);
        Ok(Self {
            writers: Split::ALL.into_iter().map(create).collect::<Result<_>>()?,
            sizes: Split::ALL.map(SplitSize::empty).to_vec(),
            count_of_id: vec![0; shape.vocabulary],
            digests: Vec::new(),
        })
    }

    fn take(&mut self, encoded: &EncodedPart) -> Result<()> {
        let EncodedPart { part, ids, words, uncounted } = encoded;
        let writer = &mut self.writers[place(part.split)];
        if part.begins_document {
            writer.begin_document()?;
        }
        writer.append(ids)?;
        if part.split == Split::Train {
            ids[*uncounted..].iter().for_each(|&id| self.count_of_id[id as usize] += 1);
        }
        let size = &mut self.sizes[place(part.split)];
        size.documents += u64::from(part.begins_document);
        size.words += words;
        size.bytes += part.text.len() as u64;
        size.tokens += ids.len() as u64;
        Ok(())
    }
}

/// Bytes on disk of all files, the measure of progress.
pub(crate) fn total_bytes(plan: &[Planned]) -> Result<Option<u64>> {
    plan.iter().map(|planned| planned.source.size()).sum::<Result<u64>>().map(Some)
}
