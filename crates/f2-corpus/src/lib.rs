//! Text in; tokenizer, token shards and counts out.
//!
//! [`prepare`] turns files of text into a corpus folder: it finds the documents, splits them,
//! learns a byte-level BPE (or takes an existing tokenizer), counts tokens on the training
//! split, renames ids to frequency ranks and writes the shards. [`Corpus`] opens such a folder.
//!
//! ```
//! use f2_corpus::{Corpus, Inputs, Options, Silent, Split, prepare};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (text, out) = (folder.path().join("text.txt"), folder.path().join("corpus"));
//! std::fs::write(&text, "the cat sat on the mat\n\n".repeat(3) + "the rat\n\nthe end\n")?;
//! let inputs = Inputs::PerSplit { train: vec![text], valid: vec![], test: vec![] };
//! prepare(&Options::new(inputs, &out), &Silent)?;
//!
//! let corpus = Corpus::open(&out)?;
//! let train = corpus.shard(Split::Train)?;
//! let mut ids = vec![0; train.len()];
//! train.copy_to(0, &mut ids);
//! assert!(corpus.tokenizer()?.decode(&ids)?.starts_with("the cat sat on the mat\nthe cat"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod corpus;
mod counts;
mod error;
mod input;
mod manifest;
pub mod names;
mod pairs;
mod parallel;
mod parts;
mod prepare;
mod sealed;
mod shard;
mod split;
mod tokenizer;

pub use builtin::builtin_text;
pub use corpus::Corpus;
pub use counts::{Counts, Ranks};
pub use error::{Error, Result};
pub use input::{Boundaries, Digest, open_text};
pub use manifest::{Manifest, SplitSize, TargetSize};
pub use pairs::{Pairs, SEPARATOR};
pub use parts::{
    LearnedVocabulary, Merged, Part, PartDone, Record, learn_vocabulary, merge, prepare_part,
};
pub use prepare::{
    Inputs, LONGEST_DOCUMENT, Observer, Options, SHARD_TOKENS, Silent, Summary, TokenizerChoice,
    documents, prepare,
};
pub use shard::Shard;
pub use split::{Fractions, Split};
pub use tokenizer::{END_OF_TEXT, Encoder, Tokenizer, WordCounts};
