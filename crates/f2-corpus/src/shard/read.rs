//! Reading token shards, memory-mapped and checked.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use f2_files::{FileRecord, ReadError, regular_file};
use memmap2::Mmap;

use super::header::{self, Header};
use crate::error::{Error, Result};

/// One file of tokens, memory-mapped rather than copied, so that a text may be larger than memory.
#[derive(Debug)]
pub(crate) struct ShardFile {
    map: Mmap,
    header: Header,
}

impl ShardFile {
    /// Opens a file and checks all of it: format, length, checksum, that no id or document start is
    /// out of range, and that it is the `expected` file, if given.
    pub(crate) fn open(path: &Path, expected: Option<&FileRecord>) -> Result<Self> {
        let file = File::open(regular_file(path)?).map_err(ReadError::of(path))?;
        // SAFETY: corpus files are published whole by a rename and never written again; a program
        // that truncates one while it is mapped breaks every reader alike.
        let map = unsafe { Mmap::map(&file) }.map_err(ReadError::of(path))?;
        Self::read(map, expected).map_err(|reason| Error::corrupt(path, reason))
    }

    fn read(map: Mmap, expected: Option<&FileRecord>) -> std::result::Result<Self, String> {
        if let Some(reason) = expected.and_then(|file| file.difference(&FileRecord::of_bytes(&map)))
        {
            return Err(reason);
        }
        let header = Header::from_bytes(&map)?;
        check(&map, header)?;
        let file = Self { map, header };
        file.check_starts()?;
        file.check_ids()?;
        Ok(file)
    }

    /// Checks that documents are consecutive and start at the first token.
    fn check_starts(&self) -> std::result::Result<(), String> {
        let mut before = 0;
        for document in 0..self.documents() {
            let start = self.start(document);
            if start < before || start > self.len() || (document == 0 && start != 0) {
                return Err(format!("document {document} cannot start at token {start}"));
            }
            before = start;
        }
        if self.documents() == 0 && self.len() > 0 {
            return Err(format!("{} tokens belong to no document", self.len()));
        }
        Ok(())
    }

    /// Checks that every id is within the vocabulary.
    fn check_ids(&self) -> std::result::Result<(), String> {
        let width = self.header.width as usize;
        let bytes = &self.map[header::LENGTH..][..self.len() * width];
        let largest = if width == 2 {
            bytes.as_chunks().0.iter().map(|id| u16::from_le_bytes(*id).into()).max()
        } else {
            bytes.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)).max()
        };
        match largest {
            Some(id) if id >= self.header.vocabulary => {
                Err(format!("the id {id} is beyond the vocabulary of {}", self.header.vocabulary))
            }
            _ => Ok(()),
        }
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.header.tokens as usize
    }

    /// Size of the vocabulary that the tokens come from.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.header.vocabulary as usize
    }

    /// Number of documents.
    pub(crate) fn documents(&self) -> usize {
        self.header.documents as usize
    }

    /// The range of a document's tokens.
    pub(crate) fn document(&self, index: usize) -> Range<usize> {
        let end = if index + 1 < self.documents() { self.start(index + 1) } else { self.len() };
        self.start(index)..end
    }

    fn start(&self, document: usize) -> usize {
        let tokens = self.len() * self.header.width as usize;
        let table = header::LENGTH + tokens.next_multiple_of(8);
        let bytes = self.map[table + 8 * document..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) as usize
    }

    /// Fills `ids` with the tokens from `start` on, as stored in the file.
    pub(crate) fn copy_to(&self, start: usize, ids: &mut [u32]) {
        let width = self.header.width as usize;
        let bytes = &self.map[header::LENGTH + start * width..][..ids.len() * width];
        if width == 2 {
            for (id, bytes) in ids.iter_mut().zip(bytes.as_chunks().0) {
                *id = u16::from_le_bytes(*bytes).into();
            }
        } else {
            for (id, bytes) in ids.iter_mut().zip(bytes.as_chunks().0) {
                *id = u32::from_le_bytes(*bytes);
            }
        }
    }
}

fn check(bytes: &[u8], header: Header) -> std::result::Result<(), String> {
    let length = bytes.len() as u64;
    match header.file_length() {
        Some(expected) if expected == length => {}
        Some(expected) if length < expected => {
            return Err(format!("cut short: {length} bytes of {expected}"));
        }
        _ => return Err(format!("{length} bytes do not fit what the header says")),
    }
    let checksum = crc32fast::hash(&bytes[header::LENGTH..]);
    if checksum != header.checksum {
        return Err(format!(
            "the checksum is {checksum:08x}, the header says {:08x}: the file is damaged",
            header.checksum
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Shard;
    use super::super::write::ShardWriter;
    use super::*;

    fn write(path: &Path, vocabulary: usize, documents: &[Vec<u32>], ranks: Option<&[u32]>) {
        let mut writer = ShardWriter::create(path, vocabulary).unwrap();
        for document in documents {
            writer.begin_document().unwrap();
            writer.append(document).unwrap();
        }
        writer.close().unwrap().finish(ranks).unwrap();
    }

    proptest! {
        #[test]
        fn round_trips_in_both_widths(
            vocabulary in prop::sample::select(vec![300_usize, 65_536, 65_537]),
            documents in prop::collection::vec(prop::collection::vec(0_u32..300, 0..20), 0..10),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("train.bin");
            let largest = vocabulary as u32 - 1;
            let documents: Vec<Vec<u32>> = documents
                .iter()
                .map(|ids| ids.iter().map(|&id| largest - id).collect())
                .collect();
            write(&path, vocabulary, &documents, None);
            let shard = Shard::open(&path).unwrap();
            prop_assert_eq!(shard.vocabulary_size(), vocabulary);
            prop_assert_eq!(shard.documents(), documents.len());
            for (index, document) in documents.iter().enumerate() {
                prop_assert_eq!(&shard.ranks(shard.document(index)), document);
            }
        }
    }

    #[test]
    fn renaming_on_disk_and_on_reading_agree() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, renamed) = (folder.path().join("kept.bin"), folder.path().join("renamed.bin"));
        let documents = [vec![0, 1, 2], vec![2]];
        write(&kept, 3, &documents, None);
        write(&renamed, 3, &documents, Some(&[2, 0, 1]));
        let kept = Shard::open(&kept).unwrap().with_ranks(vec![2, 0, 1]);
        let renamed = Shard::open(&renamed).unwrap();
        assert_eq!(kept.ranks(0..4), [2, 0, 1, 1]);
        assert_eq!(renamed.ranks(0..4), [2, 0, 1, 1]);
    }

    /// A writer may err and still store a correct checksum.
    #[test]
    fn indices_out_of_bounds_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.bin");
        write(&path, 300, &[vec![1, 2, 3], vec![4]], None);
        let whole = std::fs::read(&path).unwrap();
        let refused = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let checksum = crc32fast::hash(&bytes[header::LENGTH..]);
            bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
            std::fs::write(&path, bytes).unwrap();
            Shard::open(&path).unwrap_err().to_string()
        };
        assert!(refused(65, 2).contains("the id 513 is beyond the vocabulary of 300"));
        assert!(refused(72, 1).contains("document 0 cannot start at token 1"));
        assert!(refused(80, 5).contains("document 1 cannot start at token 5"));
        assert!(refused(87, 255).contains("document 1 cannot start at token"));
    }

    #[test]
    fn every_kind_of_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.bin");
        write(&path, 300, &[vec![1, 2, 3], vec![4]], None);
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Shard::open(&path).unwrap_err().to_string()
        };
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes
        };
        assert!(refused(&whole[..10]).contains("too short"));
        assert!(refused(&whole[..whole.len() - 1]).contains("cut short: 87 bytes of 88"));
        assert!(refused(&with(0, b'X')).contains("not a token shard"));
        assert!(refused(&with(8, 9)).contains("version 9 of the token shard, expected 1"));
        assert!(refused(&with(12, 3)).contains("tokens of 3 bytes"));
        assert!(refused(&with(65, 7)).contains("the file is damaged"));
        assert!(refused(&with(23, 255)).contains("do not fit what the header says"));
    }
}
