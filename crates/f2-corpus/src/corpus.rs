use std::path::{Path, PathBuf};

use crate::counts::{Counts, Ranks};
use crate::error::Result;
use crate::manifest::Manifest;
use crate::shard::Shard;
use crate::split::Split;
use crate::tokenizer::Tokenizer;

/// A prepared corpus on disk.
#[derive(Clone, Debug)]
pub struct Corpus {
    folder: PathBuf,
    manifest: Manifest,
}

impl Corpus {
    /// Opens the folder that [`prepare`](crate::prepare) wrote.
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = Manifest::load(&folder.join(names::MANIFEST))?;
        Ok(Self { folder: folder.to_path_buf(), manifest })
    }

    /// Where it comes from and what is in it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The tokenizer whose ids the shards hold.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        Tokenizer::load(&self.folder.join(names::TOKENIZER))
    }

    /// Token counts of the training split, by rank.
    pub fn counts(&self) -> Result<Counts> {
        Counts::load(&self.folder.join(names::COUNTS))
    }

    /// The order of ids by frequency, where the tokenizer's own ids were kept; `None` where ids
    /// are ranks.
    pub fn ranks(&self) -> Result<Option<Ranks>> {
        let path = self.folder.join(names::RANKS);
        if self.manifest.options.keep_ids { Ranks::load(&path).map(Some) } else { Ok(None) }
    }

    /// The tokens of a split, read as frequency ranks.
    pub fn shard(&self, split: Split) -> Result<Shard> {
        let shard = Shard::open(&self.folder.join(names::shard(split)))?;
        Ok(match self.ranks()? {
            Some(ranks) => shard.with_ranks(ranks.rank_of_id()),
            None => shard,
        })
    }
}

/// What the files of a corpus are called.
pub(crate) mod names {
    use crate::split::Split;

    pub(crate) const MANIFEST: &str = "manifest.json";
    pub(crate) const TOKENIZER: &str = "tokenizer.json";
    pub(crate) const COUNTS: &str = "counts.json";
    pub(crate) const RANKS: &str = "ranks.json";

    pub(crate) fn shard(split: Split) -> String {
        format!("{}.bin", split.name())
    }
}
