//! Joining encoded parts: concatenating their tokens and their texts.

use std::fs::File;
use std::io;
use std::path::Path;

use f2_files::{FileRecord, OutputFile, ReadError, WriteError};

use super::folder::Done;
use super::record::Step;
use crate::error::{Error, Result};
use crate::manifest::{SplitSize, shard_files};
use crate::names;
use crate::prepare::encode::{Encoded, Given};
use crate::prepare::place;
use crate::shard::{Shard, ShardShape};
use crate::split::Split;
use crate::tokenizer::Tokenizer;
use crate::{Observer, Options};

/// Tokens copied at a time.
const CHUNK: usize = 1 << 16;

/// Joins the parts in a folder, with the tokenizer's own ids, and counts the tokens.
pub(super) fn join(
    options: &Options,
    parts: &[Done],
    tokenizer: &Tokenizer,
    folder: &Path,
    observer: &dyn Observer,
) -> Result<Encoded> {
    let shape = ShardShape { vocabulary: tokenizer.vocabulary_size(), limit: options.shard_tokens };
    let files = parts.iter().flat_map(|part| part.record.files.values());
    observer.stage("joining the parts", Some(files.map(|file| file.bytes).sum()));
    let mut joined = Encoded::begin(shape, folder)?;
    let given = Given::new(options, tokenizer)?;
    for part in parts {
        for split in Split::ALL {
            let shard = open(part, split, shape.vocabulary)?;
            joined.take_shard(split, &shard, given, &|| {
                if observer.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
            })?;
            joined.add_size(size_of(part, split)?);
            let files = shard_files(&part.record.files, split).unwrap_or_default();
            observer.advance(files.iter().map(|(_, file)| file.bytes).sum());
        }
    }
    for split in options.written_texts() {
        join_texts(parts, &names::text(split), folder, observer)?;
    }
    Ok(joined)
}

/// The tokens of a part's split, checked against its record.
fn open(part: &Done, split: Split, vocabulary: usize) -> Result<Shard> {
    let files = shard_files(&part.record.files, split).unwrap_or_default();
    let files: Vec<(_, &FileRecord)> =
        files.into_iter().map(|(name, record)| (part.path.join(name), record)).collect();
    let shard = Shard::open_all(&files).map_err(|error| match error {
        Error::Corrupt { path, reason } => Error::BadPart { path, reason },
        error => error,
    })?;
    let size = size_of(part, split)?;
    let found = (shard.len() as u64, shard.documents() as u64, shard.vocabulary_size());
    if found != (size.tokens, size.documents, vocabulary) {
        return Err(part.bad(format!("the tokens of {} are not what it says", split.name())));
    }
    Ok(shard)
}

fn size_of(part: &Done, split: Split) -> Result<&SplitSize> {
    let size = match &part.record.step {
        Step::Encoded { splits, .. } => splits.iter().find(|size| size.split == split),
        _ => None,
    };
    size.ok_or_else(|| part.bad(format!("it says nothing of {}", split.name())))
}

fn join_texts(parts: &[Done], name: &str, folder: &Path, observer: &dyn Observer) -> Result<()> {
    let path = folder.join(name);
    let mut out = OutputFile::create_new(&path).map_err(WriteError::of(&path))?;
    for part in parts {
        part.record.check_file(&part.path, name)?;
        let from = part.path.join(name);
        let mut text = File::open(&from).map_err(ReadError::of(&from))?;
        let copied = io::copy(&mut text, &mut out).map_err(WriteError::of(&path))?;
        observer.advance(copied);
        if observer.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

impl Encoded {
    /// Appends all documents of a shard, and counts their tokens except the given ones.
    fn take_shard(
        &mut self,
        split: Split,
        shard: &Shard,
        given: Given,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let mut ids = vec![0; CHUNK.min(shard.len())];
        let writer = &mut self.writers[place(split)];
        for document in 0..shard.documents() {
            writer.begin_document()?;
            let range = shard.document(document);
            let (mut at, mut given) = (range.start, given);
            while at < range.end {
                let chunk = &mut ids[..CHUNK.min(range.end - at)];
                shard.copy_to(at, chunk);
                writer.append(chunk)?;
                if split == Split::Train {
                    let counted = &chunk[given.take(chunk)..];
                    counted.iter().for_each(|&id| self.count_of_id[id as usize] += 1);
                }
                at += chunk.len();
                go_on()?;
            }
        }
        Ok(())
    }

    fn add_size(&mut self, more: &SplitSize) {
        self.sizes[place(more.split)].add(more);
    }
}
