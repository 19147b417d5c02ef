//! From what the user named to a stream of documents.

mod chapters;
mod documents;
mod jsonl;
mod open;
mod parquet;
mod reader;
mod source;
mod text;

pub use documents::Boundaries;
pub use open::{Digest, open_text};

pub(crate) use reader::{DocumentReader, Reading};
pub(crate) use source::{Source, resolve};
