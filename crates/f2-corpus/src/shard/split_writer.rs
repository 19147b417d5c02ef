//! Writing the tokens of a split, into several files if they exceed the limit.

use std::path::{Path, PathBuf};

use super::write::{ShardWriter, Unfinished};
use crate::error::Result;
use crate::names;
use crate::split::Split;

/// The size of the vocabulary, and the number of tokens after which the next document starts a new
/// file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardShape {
    pub(crate) vocabulary: usize,
    pub(crate) limit: u64,
}

/// Writes the tokens of one split. A document never crosses from one file into the next.
pub(crate) struct SplitWriter {
    folder: PathBuf,
    split: Split,
    shape: ShardShape,
    full: Vec<Unfinished>,
    current: ShardWriter,
}

impl SplitWriter {
    pub(crate) fn create(folder: &Path, split: Split, shape: ShardShape) -> Result<Self> {
        let current =
            ShardWriter::create(&folder.join(names::shard(split, None)), shape.vocabulary)?;
        Ok(Self { folder: folder.to_path_buf(), split, shape, full: Vec::new(), current })
    }

    /// Starts a document at the next token.
    pub(crate) fn begin_document(&mut self) -> Result<()> {
        if self.current.tokens() >= self.shape.limit {
            let next = self.path(self.full.len() + 1);
            let next = ShardWriter::create(&next, self.shape.vocabulary)?;
            let mut full = std::mem::replace(&mut self.current, next).close()?;
            // The first file gets a number once there is a second.
            if self.full.is_empty() {
                full.move_to(self.path(0))?;
            }
            self.full.push(full);
        }
        self.current.begin_document()
    }

    /// Appends tokens to the document begun last.
    pub(crate) fn append(&mut self, ids: &[u32]) -> Result<()> {
        self.current.append(ids)
    }

    /// Maps every id by `rank_of_id`, if given, and completes the files; returns their names.
    pub(crate) fn finish(self, rank_of_id: Option<&[u32]>) -> Result<Vec<String>> {
        let Self { split, mut full, current, .. } = self;
        full.push(current.close()?);
        full.iter().try_for_each(|file| file.finish(rank_of_id))?;
        let alone = full.len() == 1;
        Ok((0..full.len()).map(|file| names::shard(split, (!alone).then_some(file))).collect())
    }

    fn path(&self, file: usize) -> PathBuf {
        self.folder.join(names::shard(self.split, Some(file)))
    }
}
