//! The corpora of an experiment: prepared, or still text.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use f2_corpus::{Corpus, Split, names};

use crate::Error;

/// The corpora of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpora {
    /// The corpus the models are compared on.
    pub main: CorpusSource,
    /// The corpus a model is pretrained on before it is transferred to the main one.
    pub pretraining: Option<CorpusSource>,
}

impl Corpora {
    /// The corpora of an experiment. If both are prepared, they must have the same tokenizer, as
    /// there is no text to tokenize again.
    pub fn new(main: CorpusSource, pretraining: Option<CorpusSource>) -> Result<Self, Error> {
        if let (CorpusSource::Prepared(main), Some(CorpusSource::Prepared(pretraining))) =
            (&main, &pretraining)
        {
            let [own, other] = [main, pretraining].map(|folder| Corpus::open(folder)?.tokenizer());
            other?.ids_of(&own?).map_err(|reason| Error::Tokenizers {
                main: main.clone(),
                pretraining: pretraining.clone(),
                reason,
            })?;
        }
        Ok(Self { main, pretraining })
    }
}

/// A corpus, or the text to prepare one from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorpusSource {
    /// A corpus folder written by `f2 prepare`.
    Prepared(PathBuf),
    /// Files and folders of text, still to be prepared.
    Text(Vec<PathBuf>),
}

impl CorpusSource {
    /// The single corpus that paths name: a corpus folder, or text. All paths must exist.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut all = Self::find_all(paths)?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(Error::SeveralCorpora { paths: paths.to_vec() }),
        }
    }

    /// The corpora that paths name: each corpus folder is one; files and folders of text are one
    /// together. All paths must exist.
    pub fn find_all(paths: &[PathBuf]) -> Result<Vec<Self>, Error> {
        if let Some(missing) = paths.iter().find(|path| !path.exists()) {
            return Err(Error::NoText { path: missing.clone() });
        }
        let (folders, texts): (Vec<_>, Vec<_>) =
            paths.iter().cloned().partition(|path| is_corpus(path));
        match (folders.first(), texts.first()) {
            (Some(corpus), Some(text)) => {
                Err(Error::CorpusAndText { corpus: corpus.clone(), text: text.clone() })
            }
            (Some(_), None) if folders.iter().any(|folder| is_of_pairs(folder)) => {
                let path = folders.into_iter().find(|folder| is_of_pairs(folder));
                Err(Error::Pairs { path: path.unwrap_or_default() })
            }
            (Some(_), None) => Ok(folders.into_iter().map(Self::Prepared).collect()),
            (None, _) => Ok(vec![Self::Text(texts)]),
        }
    }

    /// A name for titles: that of the first file or folder, up to the first dot.
    pub fn name(&self) -> String {
        let first = match self {
            Self::Prepared(folder) => Some(folder),
            Self::Text(paths) => paths.first(),
        };
        let name = first.and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
        name.split('.').next().unwrap_or_default().to_owned()
    }

    /// The size of the text in bytes, estimated from the sizes of files.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Prepared(folder) => {
                2 * training_shards(folder).map(|path| size(&path)).sum::<u64>()
            }
            Self::Text(paths) => paths.iter().map(|path| size(path)).sum(),
        }
    }
}

fn is_of_pairs(folder: &Path) -> bool {
    Corpus::open(folder).is_ok_and(|corpus| corpus.is_of_pairs())
}

fn is_corpus(folder: &Path) -> bool {
    folder.join(names::MANIFEST).is_file() && training_shards(folder).next().is_some()
}

/// The files with the tokens of a corpus's training split: `train.bin`, or several shards.
fn training_shards(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names::is_shard(Split::Train, &name)
    })
}

/// The approximate ratio of the sizes of decompressed and compressed text.
const UNPACKED: u64 = 3;

/// The size of a file, or of all files in a folder, in bytes; estimated decompressed size if
/// compressed.
fn size(path: &Path) -> u64 {
    let Ok(entries) = path.read_dir() else {
        let packed = ["gz", "zst"].map(OsStr::new).contains(&path.extension().unwrap_or_default());
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        return if packed { UNPACKED * bytes } else { bytes };
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_known_by_its_manifest_and_its_tokens() {
        for (file, corpus) in [
            ("train.bin", true),
            ("train-00000.bin", true),
            ("train-notes.bin", false),
            ("valid.bin", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), "").unwrap();
            assert!(!is_corpus(folder.path()), "{file} alone");
            std::fs::write(folder.path().join(names::MANIFEST), "").unwrap();
            assert_eq!(is_corpus(folder.path()), corpus, "{file}");
        }
    }
}
