//! The tokens of a split, concatenated from one file or several.

use std::ops::Range;
use std::path::{Path, PathBuf};

use f2_files::FileRecord;
use rayon::prelude::*;

use super::read::ShardFile;
use crate::error::{Error, Result};

/// The tokens of one split, memory-mapped.
#[derive(Debug)]
pub struct Shard {
    files: Vec<ShardFile>,
    /// For each file, the number of tokens and documents up to its end.
    ends: Vec<Place>,
    /// The rank of each id, if the files hold the tokenizer's own ids.
    rank_of_id: Option<Vec<u32>>,
}

/// Number of tokens and documents before a point of the split.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    tokens: usize,
    documents: usize,
}

impl Shard {
    /// Opens a file of tokens and checks all of it: format, length, checksum, and that no id or
    /// document start is out of range. [`Corpus::shard`](crate::Corpus::shard) opens all files of a
    /// split and also compares them with the manifest.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::of(vec![ShardFile::open(path, None)?]))
    }

    /// Opens consecutive files and compares each with its record.
    pub(crate) fn open_all(files: &[(PathBuf, &FileRecord)]) -> Result<Self> {
        let open =
            |(path, expected): &(PathBuf, &FileRecord)| ShardFile::open(path, Some(expected));
        let opened = files.par_iter().map(open).collect::<Result<Vec<_>>>()?;
        let vocabulary = opened.first().map(ShardFile::vocabulary_size);
        let other = |(file, _): &(&ShardFile, _)| Some(file.vocabulary_size()) != vocabulary;
        if let Some((_, (path, _))) = opened.iter().zip(files).find(other) {
            return Err(Error::corrupt(
                path,
                "another vocabulary than that of the files before it",
            ));
        }
        Ok(Self::of(opened))
    }

    fn of(files: Vec<ShardFile>) -> Self {
        let mut end = Place::default();
        let ends = files.iter().map(|file| {
            end.tokens += file.len();
            end.documents += file.documents();
            end
        });
        let ends = ends.collect();
        Self { files, ends, rank_of_id: None }
    }

    /// The same shard with ids mapped to ranks when read.
    pub(crate) fn with_ranks(mut self, rank_of_id: Vec<u32>) -> Self {
        self.rank_of_id = Some(rank_of_id);
        self
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.end().tokens
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the vocabulary that the tokens come from.
    pub fn vocabulary_size(&self) -> usize {
        self.files.first().map_or(0, ShardFile::vocabulary_size)
    }

    /// Number of documents.
    pub fn documents(&self) -> usize {
        self.end().documents
    }

    fn end(&self) -> Place {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Number of tokens and documents before a file.
    fn before(&self, file: usize) -> Place {
        file.checked_sub(1).map_or(Place::default(), |previous| self.ends[previous])
    }

    /// The range of a document's tokens.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    pub fn document(&self, index: usize) -> Range<usize> {
        assert!(index < self.documents(), "document {index} of {}", self.documents());
        let file = self.ends.partition_point(|end| end.documents <= index);
        let before = self.before(file);
        let Range { start, end } = self.files[file].document(index - before.documents);
        before.tokens + start..before.tokens + end
    }

    /// Fills `ranks` with the frequency ranks of the tokens from `start` on.
    ///
    /// # Panics
    /// If the split ends before that.
    pub fn copy_to(&self, start: usize, ranks: &mut [u32]) {
        assert!(start + ranks.len() <= self.len(), "tokens past the end of the shard");
        let mut file = self.ends.partition_point(|end| end.tokens <= start);
        let mut filled = 0;
        while filled < ranks.len() {
            let (at, end) = (start + filled, self.ends[file].tokens);
            let next = ranks.len().min(end - start);
            let within = at - self.before(file).tokens;
            self.files[file].copy_to(within, &mut ranks[filled..next]);
            (file, filled) = (file + 1, next);
        }
        if let Some(rank_of_id) = &self.rank_of_id {
            for rank in ranks {
                *rank = rank_of_id[*rank as usize];
            }
        }
    }

    /// The frequency ranks of a range of tokens.
    ///
    /// # Panics
    /// If the split ends before that.
    pub fn ranks(&self, range: Range<usize>) -> Vec<u32> {
        let mut ranks = vec![0; range.len()];
        self.copy_to(range.start, &mut ranks);
        ranks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ShardShape, SplitWriter};
    use super::*;
    use crate::split::Split;

    /// Writes documents into files of at least `limit` tokens and opens them.
    fn written(
        folder: &Path,
        limit: u64,
        documents: &[Vec<u32>],
        renaming: Option<&[u32]>,
    ) -> Shard {
        let shape = ShardShape { vocabulary: 300, limit };
        let mut writer = SplitWriter::create(folder, Split::Train, shape).unwrap();
        for document in documents {
            writer.begin_document().unwrap();
            writer.append(document).unwrap();
        }
        let names = writer.finish(renaming).unwrap();
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let records: Vec<_> = paths.iter().map(|path| FileRecord::of(path).unwrap()).collect();
        Shard::open_all(&paths.into_iter().zip(&records).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn several_files_read_as_one(
            documents in prop::collection::vec(prop::collection::vec(0_u32..300, 0..20), 0..30),
            limit in 1_u64..60,
            renamed in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let [one, several] = ["one", "several"].map(|name| folder.path().join(name));
            [&one, &several].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
            let reversed: Vec<u32> = (0..300).rev().collect();
            let renaming = renamed.then_some(reversed.as_slice());
            let one = written(&one, u64::MAX, &documents, renaming);
            let several = written(&several, limit, &documents, renaming);
            prop_assert_eq!(one.files.len(), 1);
            let total: usize = documents.iter().map(Vec::len).sum();
            prop_assert!(several.files.len() as u64 <= 1 + total as u64 / limit);
            prop_assert_eq!(several.len(), one.len());
            prop_assert_eq!(several.documents(), one.documents());
            for document in 0..one.documents() {
                prop_assert_eq!(several.document(document), one.document(document));
            }
            prop_assert_eq!(several.ranks(0..total), one.ranks(0..total));
            for start in 0..total {
                let end = (start + 25).min(total);
                prop_assert_eq!(several.ranks(start..end), one.ranks(start..end));
            }
        }
    }

    #[test]
    fn a_document_begins_another_file_once_one_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let documents = [vec![1; 3], vec![2; 2], vec![3; 9], vec![4]];
        let shard = written(folder.path(), 5, &documents, None);
        let lengths: Vec<usize> = shard.files.iter().map(ShardFile::len).collect();
        assert_eq!(lengths, [5, 9, 1]);
        let mut names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["train-00000.bin", "train-00001.bin", "train-00002.bin"]);
    }
}
