//! A prepared corpus and its frequency classes, as training reads them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use f2_classes::{ClassSelection, CountsFingerprint};
use f2_corpus::{Corpus, END_OF_TEXT, Shard, Split};
use f2_files::{FileRecord, ReadError, regular_file};

use super::Splits;
use crate::Error;
use crate::batch::{Pair, SeparatedTokens, Shortened, TokenSource};
use crate::config::TrainConfig;
use crate::run::checkpoint::{CLASSES, COUNTS, RANKS, TOKENIZER};
use crate::run::{CorpusRecord, Vocabulary};

/// A prepared corpus, as training reads it.
#[derive(Debug)]
pub struct TrainingCorpus {
    /// The training split.
    pub train: SeparatedTokens<Shard>,
    /// The validation split; may be empty.
    pub valid: SeparatedTokens<Shard>,
    /// Its fingerprints and sizes.
    pub record: CorpusRecord,
    /// How often each token occurs in the training split, by rank.
    pub counts: Vec<u64>,
    /// The token that ends a document, if the tokenizer has one.
    pub end_of_text: Option<u32>,
}

/// Frequency classes and the file they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Where each class ends.
    pub ends: Vec<u32>,
    /// SHA-256 of the file.
    pub sha256: String,
    /// The file.
    pub path: PathBuf,
}

impl Classes {
    /// Refuses to resume a run that was started with other classes.
    pub fn check_same(&self, run: Option<&str>) -> Result<(), Error> {
        match run {
            Some(expected) if expected != self.sha256 => Err(Error::ClassesChanged {
                path: self.path.clone(),
                found: self.sha256.clone(),
                expected: expected.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

impl TrainingCorpus {
    /// Opens the corpus in a folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let corpus = Corpus::open(folder)?;
        let counts = corpus.counts()?.counts;
        let vocabulary = Vocabulary::new(corpus.tokenizer()?, corpus.ranks()?);
        let manifest = corpus.manifest();
        let separator = separator(folder, manifest, &vocabulary)?;
        let tokens =
            |split| Ok::<_, Error>(SeparatedTokens { tokens: corpus.shard(split)?, separator });
        let (train, valid) = (tokens(Split::Train)?, tokens(Split::Valid)?);
        let record = CorpusRecord {
            // Absolute: a run can be resumed from any working directory.
            path: folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()),
            counts_sha256: CountsFingerprint::of(&counts).to_string(),
            tokenizer_sha256: manifest.tokenizer_sha256()?.to_owned(),
            vocabulary: manifest.vocabulary_size,
            train_tokens: train.len(),
            valid_tokens: valid.len(),
        };
        let end_of_text = vocabulary.token(END_OF_TEXT);
        Ok(Self { train, valid, record, counts, end_of_text })
    }

    /// Whether its documents are pairs of a source and a target.
    pub fn is_of_pairs(&self) -> bool {
        self.train.separator.is_some()
    }

    /// How many pairs of the training split are longer than a row of `sequence` positions; `None`
    /// if documents are not pairs.
    pub fn shortened(&self, sequence: usize) -> Result<Option<Shortened>, Error> {
        let Some(separator) = self.train.separator else { return Ok(None) };
        let pairs = Pair::all(&self.train, separator)?;
        Ok(Some(Pair::shortened(&pairs, sequence as u64 + 1)))
    }

    /// The splits a session reads.
    pub fn splits(&self) -> Splits<'_> {
        Splits { train: &self.train, valid: &self.valid, end_of_text: self.end_of_text }
    }

    /// Reads frequency classes and makes sure that they were made from this corpus.
    pub fn classes(&self, path: &Path) -> Result<Classes, Error> {
        if !path.exists() {
            return Err(Error::NoClasses { path: path.to_path_buf() });
        }
        let selection = ClassSelection::load(regular_file(path)?)?;
        let found = selection.counts_fingerprint().to_string();
        if found != self.record.counts_sha256 {
            return Err(Error::ClassesMismatch {
                classes: path.to_path_buf(),
                found,
                corpus: self.record.path.clone(),
                expected: self.record.counts_sha256.clone(),
            });
        }
        let FileRecord { sha256, .. } = FileRecord::of(path).map_err(ReadError::of(path))?;
        let ends = selection.classes().ends().iter().map(|end| *end as u32).collect();
        Ok(Classes { ends, sha256, path: path.to_path_buf() })
    }

    /// The frequency classes of a configuration, from the file `named` or else from `usual`. `None`
    /// for a plain softmax.
    pub fn classes_for(
        &self,
        config: &TrainConfig,
        named: Option<&Path>,
        usual: &Path,
    ) -> Result<Option<Classes>, Error> {
        match named {
            Some(_) if !config.objective.name.needs_classes() => Err(Error::ClassesOfNoUse),
            _ if !config.objective.name.needs_classes() => Ok(None),
            named => self.classes(named.unwrap_or(usual)).map(Some),
        }
    }

    /// Refuses to resume a run that was trained on another corpus.
    pub fn check_same(&self, run: &CorpusRecord) -> Result<(), Error> {
        let prints = |record: &CorpusRecord| {
            format!("counts {}, tokenizer {}", record.counts_sha256, record.tokenizer_sha256)
        };
        let sizes = |record: &CorpusRecord| (record.train_tokens, record.valid_tokens);
        if prints(run) == prints(&self.record) && sizes(run) == sizes(&self.record) {
            return Ok(());
        }
        Err(Error::CorpusChanged {
            path: self.record.path.clone(),
            found: prints(&self.record),
            expected: prints(run),
        })
    }

    /// The files a checkpoint holds beside its tensors, so that it can be used on its own.
    pub fn attachments(&self, classes: Option<&Classes>) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let folder = &self.record.path;
        let mut paths = [TOKENIZER, COUNTS].map(|name| (name, folder.join(name))).to_vec();
        // Only corpora that kept their tokenizer's own ids have this one.
        let ranks = folder.join(RANKS);
        if ranks.exists() {
            paths.push((RANKS, ranks));
        }
        paths.extend(classes.map(|classes| (CLASSES, classes.path.clone())));
        let read = |(name, path): (&str, PathBuf)| {
            let bytes = f2_files::read_bytes(regular_file(&path)?)?;
            Ok((name.to_owned(), bytes))
        };
        paths.into_iter().map(read).collect()
    }

    /// How many output vectors a target is compared with on average: with classes, their number
    /// and the size of the target's own; without, the vocabulary.
    pub fn mean_outputs(&self, class_ends: &[u32]) -> f64 {
        if class_ends.is_empty() {
            return self.record.vocabulary as f64;
        }
        let total: u64 = self.counts.iter().sum();
        let starts = std::iter::once(0).chain(class_ends.iter().copied());
        let inside: f64 = starts
            .zip(class_ends)
            .map(|(start, end)| {
                let mass: u64 = self.counts[start as usize..*end as usize].iter().sum();
                mass as f64 / total as f64 * f64::from(end - start)
            })
            .sum();
        inside + class_ends.len() as f64
    }
}

/// The token between source and target of a corpus of pairs.
fn separator(
    folder: &Path,
    manifest: &f2_corpus::Manifest,
    vocabulary: &Vocabulary,
) -> Result<Option<u32>, Error> {
    let Some(pairs) = &manifest.options.pairs else { return Ok(None) };
    let token = vocabulary.token(&pairs.separator);
    token.map(Some).ok_or_else(|| {
        let reason = format!("the tokenizer has no token {}", pairs.separator);
        f2_corpus::Error::Corrupt { path: folder.to_path_buf(), reason }.into()
    })
}

impl TokenSource for Shard {
    fn len(&self) -> u64 {
        Self::len(self) as u64
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        self.copy_to(range.start as usize, out);
    }

    fn documents(&self) -> Vec<Range<u64>> {
        let ranges = (0..Self::documents(self)).map(|index| self.document(index));
        ranges.map(|range| range.start as u64..range.end as u64).collect()
    }
}
