use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use f2_corpus::Corpus;

use crate::Error;

/// The texts of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The text the models are compared on.
    pub main: TextSource,
    /// The text a model is pretrained on before it is transferred to the main one.
    pub pretraining: Option<TextSource>,
}

impl Texts {
    /// Puts two texts together. Two corpora must have the same tokens, as no text is there to cut
    /// again.
    pub fn new(main: TextSource, pretraining: Option<TextSource>) -> Result<Self, Error> {
        if let (TextSource::Corpus(main), Some(TextSource::Corpus(pretraining))) =
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

/// A text an experiment is made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// A corpus folder that `f2 prepare` wrote.
    Corpus(PathBuf),
    /// Files and folders of text, still to be prepared.
    Text(Vec<PathBuf>),
}

impl TextSource {
    /// Tells a corpus folder from text. Everything must be there.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        if let Some(missing) = paths.iter().find(|path| !path.exists()) {
            return Err(Error::NoText { path: missing.clone() });
        }
        Ok(match paths {
            [folder] if is_corpus(folder) => Self::Corpus(folder.clone()),
            _ => Self::Text(paths.to_vec()),
        })
    }

    /// A name for titles: that of the first file or folder, without its endings.
    pub fn name(&self) -> String {
        let first = match self {
            Self::Corpus(folder) => Some(folder),
            Self::Text(paths) => paths.first(),
        };
        let name = first.and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
        name.split('.').next().unwrap_or_default().to_owned()
    }

    /// Bytes of text, as far as a look at the disk can tell.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Corpus(folder) => 2 * size(&folder.join("train.bin")),
            Self::Text(paths) => paths.iter().map(|path| size(path)).sum(),
        }
    }
}

fn is_corpus(folder: &Path) -> bool {
    folder.join("manifest.json").is_file() && folder.join("train.bin").is_file()
}

/// What packed text is unpacked to, about.
const UNPACKED: u64 = 3;

/// Bytes of a file, or of all files in a folder; packed ones as they are unpacked.
fn size(path: &Path) -> u64 {
    let Ok(entries) = path.read_dir() else {
        let packed = ["gz", "zst"].map(OsStr::new).contains(&path.extension().unwrap_or_default());
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        return if packed { UNPACKED * bytes } else { bytes };
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}
