//! A prepared corpus on disk: opening it, and checking its files against the manifest.

use std::path::{Path, PathBuf};

use f2_files::{FileRecord, regular_file};

use crate::counts::{Counts, Ranks};
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::names;
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

    /// Origin and contents of the corpus.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether its documents are pairs of a source and a target.
    pub fn is_of_pairs(&self) -> bool {
        self.manifest.options.pairs.is_some()
    }

    /// The tokenizer whose ids the shards hold.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        let (path, bytes) = self.read(names::TOKENIZER)?;
        Tokenizer::from_bytes(&bytes, &path)
    }

    /// Token counts of the training split, by rank.
    pub fn counts(&self) -> Result<Counts> {
        let (path, bytes) = self.read(names::COUNTS)?;
        let counts = Counts::from_json(&bytes).map_err(|reason| Error::corrupt(&path, reason))?;
        self.check_vocabulary(&path, counts.counts.len())?;
        Ok(counts)
    }

    /// The order of ids by frequency if the tokenizer's own ids were kept; `None` if ids are
    /// ranks.
    pub fn ranks(&self) -> Result<Option<Ranks>> {
        if !self.manifest.options.keep_ids {
            return Ok(None);
        }
        let (path, bytes) = self.read(names::RANKS)?;
        let ranks = Ranks::from_json(&bytes).map_err(|reason| Error::corrupt(&path, reason))?;
        self.check_vocabulary(&path, ranks.id_of_rank.len())?;
        Ok(Some(ranks))
    }

    /// The tokens of a split as frequency ranks, from one file or several.
    pub fn shard(&self, split: Split) -> Result<Shard> {
        let files = self.manifest.shard_files(split)?;
        let records: Vec<_> =
            files.iter().map(|(name, record)| (self.folder.join(name), *record)).collect();
        let shard = Shard::open_all(&records)?;
        let path = &records[0].0;
        self.check_vocabulary(path, shard.vocabulary_size())?;
        let stated = self.manifest.size(split).map(|size| (size.tokens, size.documents));
        let found = (shard.len() as u64, shard.documents() as u64);
        if stated != Some(found) {
            let (tokens, documents) = found;
            let reason =
                format!("{tokens} tokens in {documents} documents, the manifest says otherwise");
            return Err(Error::corrupt(path, reason));
        }
        Ok(match self.ranks()? {
            Some(ranks) => shard.with_ranks(ranks.rank_of_id()),
            None => shard,
        })
    }

    /// Path and content of a file, checked against the manifest.
    fn read(&self, name: &str) -> Result<(PathBuf, Vec<u8>)> {
        let path = self.folder.join(name);
        let bytes = f2_files::read_bytes(regular_file(&path)?)?;
        match self.manifest.file(name)?.difference(&FileRecord::of_bytes(&bytes)) {
            None => Ok((path, bytes)),
            Some(reason) => Err(Error::corrupt(&path, reason)),
        }
    }

    fn check_vocabulary(&self, path: &Path, found: usize) -> Result<()> {
        let expected = self.manifest.vocabulary_size;
        if found == expected {
            return Ok(());
        }
        let reason = format!("a vocabulary of {found} tokens, the manifest says {expected}");
        Err(Error::corrupt(path, reason))
    }
}
