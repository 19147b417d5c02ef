//! From the inputs named by the user to a stream of documents.

mod chapters;
mod documents;
mod input_file;
mod jsonl;
mod open;
mod parquet;
mod reader;
mod text;

pub use documents::Boundaries;
pub use open::{Digest, open_text};

pub(crate) use input_file::{InputFile, resolve};
pub(crate) use jsonl::field_of;
pub(crate) use reader::{DocumentReader, Reading};
