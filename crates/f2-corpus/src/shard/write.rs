//! Writing token shards.

use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use f2_files::{OutputFile, WriteError};
use memmap2::MmapMut;
use rayon::prelude::*;

use super::header::{self, Header, width_for};
use crate::error::Result;

/// Tokens renamed by one task at a time.
const CHUNK: usize = 1 << 18;

/// Writes a shard as documents come, and completes it in place.
pub(crate) struct ShardWriter {
    out: BufWriter<OutputFile>,
    path: PathBuf,
    vocabulary: usize,
    width: u32,
    tokens: u64,
    documents: Vec<u64>,
}

impl ShardWriter {
    pub(crate) fn create(path: &Path, vocabulary: usize) -> Result<Self> {
        let file = OutputFile::create_new(path).map_err(WriteError::of(path))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        // The header is known last; until then the file has none and cannot be taken for whole.
        out.write_all(&[0; header::LENGTH]).map_err(WriteError::of(path))?;
        let (path, width) = (path.to_path_buf(), width_for(vocabulary));
        Ok(Self { out, path, vocabulary, width, tokens: 0, documents: Vec::new() })
    }

    /// Starts a document at the next token.
    pub(crate) fn begin_document(&mut self) {
        self.documents.push(self.tokens);
    }

    /// Appends tokens to the document begun last.
    pub(crate) fn append(&mut self, ids: &[u32]) -> Result<()> {
        self.tokens += ids.len() as u64;
        let mut write = || match self.width {
            2 => ids.iter().try_for_each(|&id| self.out.write_all(&(id as u16).to_le_bytes())),
            _ => ids.iter().try_for_each(|&id| self.out.write_all(&id.to_le_bytes())),
        };
        Ok(write().map_err(WriteError::of(&self.path))?)
    }

    /// Renames every token where a renaming is given, and writes the header: the shard is whole.
    pub(crate) fn finish(mut self, rank_of_id: Option<&[u32]>) -> Result<()> {
        let path = std::mem::take(&mut self.path);
        self.write_documents().map_err(WriteError::of(&path))?;
        let Self { out, vocabulary, width, tokens, documents, .. } = self;
        let mut file =
            out.into_inner().map_err(|error| WriteError::of(&path)(error.into_error()))?;
        // SAFETY: the file lies in a staging folder of this process; nobody else writes to it.
        let mut map = unsafe { MmapMut::map_mut(file.file()) }.map_err(WriteError::of(&path))?;
        if let Some(rank_of_id) = rank_of_id {
            let ids = &mut map[header::LENGTH..][..tokens as usize * width as usize];
            rename(ids, width, rank_of_id);
        }
        let header = Header {
            width,
            tokens,
            documents: documents.len() as u64,
            vocabulary: vocabulary as u32,
            checksum: crc32fast::hash(&map[header::LENGTH..]),
        };
        map.flush().map_err(WriteError::of(&path))?;
        drop(map);
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&header.to_bytes()))
            .and_then(|()| file.sync());
        Ok(written.map_err(WriteError::of(&path))?)
    }

    fn write_documents(&mut self) -> std::io::Result<()> {
        let bytes = self.tokens * u64::from(self.width);
        let padding = bytes.next_multiple_of(8) - bytes;
        self.out.write_all(&[0; 8][..padding as usize])?;
        for start in &self.documents {
            self.out.write_all(&start.to_le_bytes())?;
        }
        self.out.flush()
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
