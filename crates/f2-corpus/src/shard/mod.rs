//! Tokens on disk: a header, the ids, and where each document starts.

mod header;
mod read;
mod write;

pub use read::Shard;
pub(crate) use write::ShardWriter;
