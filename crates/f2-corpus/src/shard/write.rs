//! Writing token shards.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use f2_files::{OutputFile, ReadError, WriteError, disk};
use memmap2::MmapMut;
use rayon::prelude::*;

use super::header::{self, Header, width_for};
use crate::error::Result;

/// Tokens renamed by one task.
const CHUNK: usize = 1 << 18;

/// Writes one file of tokens, document by document.
pub(crate) struct ShardWriter {
    tokens_out: BufWriter<OutputFile>,
    /// The start of each document, in a separate file until all tokens are written: for short
    /// documents the table may not fit in memory.
    starts_out: BufWriter<OutputFile>,
    unfinished: Unfinished,
}

/// A file with all tokens and document starts; renaming and header are missing.
pub(crate) struct Unfinished {
    path: PathBuf,
    vocabulary: usize,
    width: u32,
    tokens: u64,
    documents: u64,
}

impl ShardWriter {
    pub(crate) fn create(path: &Path, vocabulary: usize) -> Result<Self> {
        let create = |path: &Path| {
            let file = OutputFile::create_new(path).map_err(WriteError::of(path))?;
            Ok::<_, WriteError>(BufWriter::with_capacity(1 << 20, file))
        };
        let (mut tokens_out, starts_out) = (create(path)?, create(&starts_path(path))?);
        // The header is written last: until then the file cannot be mistaken for a complete one.
        tokens_out.write_all(&[0; header::LENGTH]).map_err(WriteError::of(path))?;
        let (path, width) = (path.to_path_buf(), width_for(vocabulary));
        let unfinished = Unfinished { path, vocabulary, width, tokens: 0, documents: 0 };
        Ok(Self { tokens_out, starts_out, unfinished })
    }

    /// Tokens so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.unfinished.tokens
    }

    /// Starts a document at the next token.
    pub(crate) fn begin_document(&mut self) -> Result<()> {
        self.unfinished.documents += 1;
        let written = self.starts_out.write_all(&self.unfinished.tokens.to_le_bytes());
        Ok(written.map_err(WriteError::of(&self.unfinished.path))?)
    }

    /// Appends tokens to the document begun last.
    pub(crate) fn append(&mut self, ids: &[u32]) -> Result<()> {
        self.unfinished.tokens += ids.len() as u64;
        let out = &mut self.tokens_out;
        let mut write = || match self.unfinished.width {
            2 => ids.iter().try_for_each(|&id| out.write_all(&(id as u16).to_le_bytes())),
            _ => ids.iter().try_for_each(|&id| out.write_all(&id.to_le_bytes())),
        };
        Ok(write().map_err(WriteError::of(&self.unfinished.path))?)
    }

    /// Appends the document starts to the tokens and closes the file.
    pub(crate) fn close(mut self) -> Result<Unfinished> {
        let path = &self.unfinished.path;
        let starts = starts_path(path);
        self.starts_out.flush().map_err(WriteError::of(&starts))?;
        let mut table = File::open(&starts).map_err(ReadError::of(&starts))?;
        let bytes = self.unfinished.tokens * u64::from(self.unfinished.width);
        let padding = bytes.next_multiple_of(8) - bytes;
        self.tokens_out
            .write_all(&[0; 8][..padding as usize])
            .and_then(|()| io::copy(&mut table, &mut self.tokens_out))
            .and_then(|_| self.tokens_out.flush())
            .map_err(WriteError::of(path))?;
        disk::remove_file(&starts).map_err(WriteError::of(&starts))?;
        Ok(self.unfinished)
    }
}

/// The temporary file of the document starts.
fn starts_path(path: &Path) -> PathBuf {
    path.with_extension("starts")
}

impl Unfinished {
    /// Maps every id by `rank_of_id`, if given, and writes the header, which completes the shard.
    pub(crate) fn finish(&self, rank_of_id: Option<&[u32]>) -> Result<()> {
        Ok(self.complete(rank_of_id).map_err(WriteError::of(&self.path))?)
    }

    /// Renames the file.
    pub(crate) fn move_to(&mut self, path: PathBuf) -> Result<()> {
        disk::rename(&self.path, &path).map_err(WriteError::of(&path))?;
        self.path = path;
        Ok(())
    }

    fn complete(&self, rank_of_id: Option<&[u32]>) -> io::Result<()> {
        let mut file = OutputFile::reopen(&self.path)?;
        // SAFETY: the file is in a staging folder of this process; nothing else writes to it.
        let mut map = unsafe { MmapMut::map_mut(file.file()) }?;
        if let Some(rank_of_id) = rank_of_id {
            let bytes = self.tokens as usize * self.width as usize;
            rename(&mut map[header::LENGTH..][..bytes], self.width, rank_of_id);
        }
        let header = Header {
            width: self.width,
            tokens: self.tokens,
            documents: self.documents,
            vocabulary: self.vocabulary as u32,
            checksum: crc32fast::hash(&map[header::LENGTH..]),
        };
        map.flush()?;
        drop(map);
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header.to_bytes())?;
        file.sync()
    }
}

fn rename(ids: &mut [u8], width: u32, rank_of_id: &[u32]) {
    ids.par_chunks_mut(CHUNK * width as usize).for_each(|chunk| match width {
        2 => {
            for bytes in chunk.as_chunks_mut::<2>().0 {
                let id = u16::from_le_bytes(*bytes);
                *bytes = (rank_of_id[usize::from(id)] as u16).to_le_bytes();
            }
        }
        _ => {
            for bytes in chunk.as_chunks_mut::<4>().0 {
                let id = u32::from_le_bytes(*bytes);
                *bytes = rank_of_id[id as usize].to_le_bytes();
            }
        }
    });
}
