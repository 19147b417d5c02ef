//! The options of a preparation.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::input::{Boundaries, Reading};
use crate::pairs::Pairs;
use crate::split::{Fractions, Split};
use crate::tokenizer::END_OF_TEXT;

/// The default limit of a document, in bytes; several such documents must fit in memory.
pub const LONGEST_DOCUMENT: u64 = 256 << 20;

/// The default number of tokens per file: two or four gigabytes.
pub const SHARD_TOKENS: u64 = 1 << 30;

/// The inputs and settings of a preparation. Those that affect the corpus are serialised.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// The text.
    pub inputs: Inputs,
    /// The corpus folder to write.
    #[serde(skip)]
    pub out: PathBuf,
    /// Replace the folder if it exists.
    #[serde(skip)]
    pub replace: bool,
    /// Where documents begin and end in plain text.
    pub documents: Boundaries,
    /// The field or column that holds the text of a record.
    pub field: String,
    /// Replace invalid UTF-8 instead of refusing it.
    pub lossy: bool,
    /// The largest document allowed, in bytes.
    pub longest_document: u64,
    /// Spread documents over the splits in order, so that each split is contiguous, instead of by a
    /// hash of their content.
    pub in_order: bool,
    /// The splits whose text is written beside the shards.
    pub text_of: Vec<Split>,
    /// The tokenizer.
    pub tokenizer: TokenizerChoice,
    /// Keep the tokenizer's ids and store their order by frequency in a separate file.
    pub keep_ids: bool,
    /// Put `<|endoftext|>` after every document.
    pub end_of_text: bool,
    /// Put it before every document, too, as a start symbol that is not counted.
    pub start_of_text: bool,
    /// Read pairs of a source and a target, from JSON Lines: each is one document, with a separator
    /// between and `<|endoftext|>` after it, never before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// Number of tokens after which the next document starts a new file of its split.
    pub shard_tokens: u64,
    /// Number of threads.
    #[serde(skip)]
    pub threads: usize,
}

impl Options {
    /// The defaults: byte-level BPE of 30,000 tokens, all cores.
    pub fn new(inputs: Inputs, out: &Path) -> Self {
        Self {
            inputs,
            out: out.to_path_buf(),
            replace: false,
            documents: Boundaries::Auto,
            field: "text".to_owned(),
            lossy: false,
            longest_document: LONGEST_DOCUMENT,
            in_order: false,
            text_of: Vec::new(),
            tokenizer: TokenizerChoice::default(),
            keep_ids: false,
            end_of_text: false,
            start_of_text: false,
            pairs: None,
            shard_tokens: SHARD_TOKENS,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl Options {
    /// Whether the tokenizer must have the token `<|endoftext|>`.
    pub(crate) fn marks_documents(&self) -> bool {
        self.ends_documents() || self.start_of_text
    }

    /// Whether `<|endoftext|>` follows every document.
    pub(crate) fn ends_documents(&self) -> bool {
        self.end_of_text || self.pairs.is_some()
    }

    /// Whether it precedes every document, too.
    pub(crate) fn starts_documents(&self) -> bool {
        self.start_of_text && self.pairs.is_none()
    }

    /// The special tokens that the tokenizer must have.
    pub(crate) fn special_tokens(&self) -> Vec<&str> {
        let end = self.marks_documents().then_some(END_OF_TEXT);
        let separator = self.pairs.as_ref().map(|pairs| pairs.separator.as_str());
        // The end-of-text token may also be the separator.
        end.into_iter().chain(separator.filter(|token| *token != END_OF_TEXT)).collect()
    }

    /// The splits whose text is written out, each once, in the order of [`Split::ALL`].
    pub(crate) fn written_texts(&self) -> impl Iterator<Item = Split> {
        Split::ALL.into_iter().filter(|split| self.text_of.contains(split))
    }

    /// How to find documents in the files.
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            boundaries: self.documents,
            field: self.field.clone(),
            pairs: self.pairs.clone(),
            lossy: self.lossy,
            longest: self.longest_document,
        }
    }
}

/// The text of each split: files, folders, or `-` for standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inputs {
    /// Every split has its own text.
    PerSplit {
        /// Training text.
        train: Vec<PathBuf>,
        /// Validation text; may be empty.
        valid: Vec<PathBuf>,
        /// Test text; may be empty.
        test: Vec<PathBuf>,
    },
    /// One text, whose documents are spread over the splits.
    Spread {
        /// The text.
        paths: Vec<PathBuf>,
        /// The share of each split.
        fractions: Fractions,
    },
}

impl Inputs {
    /// Whether documents are meant to end up in this split.
    pub(crate) fn expects(&self, split: Split) -> bool {
        match self {
            Self::Spread { fractions, .. } => fractions.of(split) > 0.0,
            Self::PerSplit { train, valid, test } => match split {
                Split::Train => !train.is_empty(),
                Split::Valid => !valid.is_empty(),
                Split::Test => !test.is_empty(),
            },
        }
    }

    pub(crate) fn fractions(&self) -> Option<Fractions> {
        match self {
            Self::Spread { fractions, .. } => Some(*fractions),
            Self::PerSplit { .. } => None,
        }
    }

    /// Every path with the split it was given for.
    pub(crate) fn paths(&self) -> Vec<(Option<Split>, &PathBuf)> {
        match self {
            Self::Spread { paths, .. } => paths.iter().map(|path| (None, path)).collect(),
            Self::PerSplit { train, valid, test } => [train, valid, test]
                .into_iter()
                .zip(Split::ALL)
                .flat_map(|(paths, split)| paths.iter().map(move |path| (Some(split), path)))
                .collect(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let paths: Vec<String> =
            self.paths().iter().map(|(_, path)| path.display().to_string()).collect();
        paths.join(", ")
    }
}

/// The tokenizer that turns text into ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenizerChoice {
    /// A byte-level BPE, learned from the training split.
    Train {
        /// The most tokens to learn, including the 256 bytes.
        vocabulary_size: usize,
    },
    /// A `tokenizer.json`.
    File(PathBuf),
    /// GPT-2's pair of files.
    VocabularyAndMerges {
        /// `vocab.json`.
        vocabulary: PathBuf,
        /// `merges.txt`.
        merges: PathBuf,
    },
}

impl Default for TokenizerChoice {
    fn default() -> Self {
        Self::Train { vocabulary_size: 30_000 }
    }
}

impl TokenizerChoice {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Train { vocabulary_size } => format!("byte-level BPE of {vocabulary_size}"),
            Self::File(path) => path.display().to_string(),
            Self::VocabularyAndMerges { vocabulary, merges } => {
                format!("{} and {}", vocabulary.display(), merges.display())
            }
        }
    }
}
