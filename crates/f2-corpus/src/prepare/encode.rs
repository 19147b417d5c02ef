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
use crate::manifest::{SplitSize, TargetSize};
use crate::pairs::Pairs;
use crate::parallel;
use crate::shard::{ShardShape, SplitWriter};
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Encoder, Tokenizer};

/// The text as tokens with the tokenizer's own ids, on disk except for the headers.
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
    bytes: u64,
    /// Leading tokens that are given, never predicted: a start symbol or a source.
    given: usize,
    /// The size of the target, if the document is a pair.
    targets: Option<TargetSize>,
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
        |encoder, batch| {
            let encode = |part| match &options.pairs {
                Some(pairs) => encode_pair(encoder, part, pairs, marks),
                None => encode_part(encoder, part, marks),
            };
            batch.into_iter().map(encode).collect()
        },
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

/// The special tokens around every document, and between the texts of a pair.
#[derive(Clone, Copy)]
struct Marks {
    start: Option<u32>,
    separator: Option<u32>,
    end: Option<u32>,
}

impl Marks {
    fn new(options: &Options, tokenizer: &Tokenizer) -> Result<Self> {
        if !options.marks_documents() {
            return Ok(Self { start: None, separator: None, end: None });
        }
        let id = tokenizer.token_id(END_OF_TEXT).ok_or_else(|| Error::Tokenizer {
            origin: options.tokenizer.describe(),
            reason: format!("there is no token {END_OF_TEXT} to mark documents with"),
        })?;
        let mark = |wanted: bool| wanted.then_some(id);
        Ok(Self {
            start: mark(options.starts_documents()),
            separator: separator(options, tokenizer)?,
            end: mark(options.ends_documents()),
        })
    }
}

/// The token between source and target, if documents are pairs. The tokenizer must encode it as a
/// single token, so that other text never contains its id.
fn separator(options: &Options, tokenizer: &Tokenizer) -> Result<Option<u32>> {
    let Some(Pairs { separator, .. }) = &options.pairs else { return Ok(None) };
    let id = tokenizer.token_id(separator);
    if id.is_none() || tokenizer.encode(separator)? != id.as_slice() {
        let (tokenizer, separator) = (options.tokenizer.describe(), separator.clone());
        return Err(Error::NoSeparator { tokenizer, separator });
    }
    Ok(id)
}

/// The leading tokens of a document that are given, never predicted, and therefore not counted.
#[derive(Clone, Copy)]
pub(crate) enum Given {
    /// This many.
    First(usize),
    /// All up to and including this token.
    Through(u32),
}

impl Given {
    pub(crate) fn new(options: &Options, tokenizer: &Tokenizer) -> Result<Self> {
        let first = Self::First(usize::from(options.starts_documents()));
        Ok(separator(options, tokenizer)?.map_or(first, Self::Through))
    }

    /// How many leading tokens of the next piece of a document are given; `self` keeps track of
    /// those in later pieces.
    pub(crate) fn take(&mut self, piece: &[u32]) -> usize {
        let (taken, left) = match *self {
            Self::First(count) => {
                let taken = count.min(piece.len());
                (taken, Self::First(count - taken))
            }
            Self::Through(last) => match piece.iter().position(|id| *id == last) {
                Some(place) => (place + 1, Self::First(0)),
                None => (piece.len(), *self),
            },
        };
        *self = left;
        taken
    }
}

fn words_of(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// Source, separator, target, end of text.
fn encode_pair(
    encoder: &mut Encoder,
    part: DocumentPart,
    pairs: &Pairs,
    marks: Marks,
) -> Result<EncodedPart> {
    let [source, target] = pairs.sides(&part.text);
    let mut ids = Vec::with_capacity(part.text.len() / 3);
    encoder.encode(source, &mut ids)?;
    ids.extend(marks.separator);
    let given = ids.len();
    encoder.encode(target, &mut ids)?;
    ids.extend(marks.end);
    let (words, bytes, tokens) =
        (words_of(target), target.len() as u64, (ids.len() - given) as u64);
    let targets = Some(TargetSize { words, bytes, tokens });
    let (words, bytes) = (words + words_of(source), bytes + source.len() as u64);
    Ok(EncodedPart { part, ids, words, bytes, given, targets })
}

fn encode_part(encoder: &mut Encoder, part: DocumentPart, marks: Marks) -> Result<EncodedPart> {
    let mut ids = Vec::with_capacity(part.text.len() / 3);
    let start = marks.start.filter(|_| part.begins_document);
    ids.extend(start);
    encoder.encode(&part.text, &mut ids)?;
    if part.ends_document {
        ids.extend(marks.end);
    }
    let (words, given) = (words_of(&part.text), usize::from(start.is_some()));
    let bytes = part.text.len() as u64;
    Ok(EncodedPart { part, ids, words, bytes, given, targets: None })
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
        let EncodedPart { part, ids, words, bytes, given, targets } = encoded;
        let writer = &mut self.writers[place(part.split)];
        if part.begins_document {
            writer.begin_document()?;
        }
        writer.append(ids)?;
        if part.split == Split::Train {
            ids[*given..].iter().for_each(|&id| self.count_of_id[id as usize] += 1);
        }
        self.sizes[place(part.split)].add(&SplitSize {
            split: part.split,
            documents: u64::from(part.begins_document),
            words: *words,
            bytes: *bytes,
            tokens: ids.len() as u64,
            targets: *targets,
        });
        Ok(())
    }
}

/// Bytes on disk of all files, for progress.
pub(crate) fn total_bytes(plan: &[Planned]) -> Result<Option<u64>> {
    plan.iter().map(|planned| planned.source.size()).sum::<Result<u64>>().map(Some)
}
