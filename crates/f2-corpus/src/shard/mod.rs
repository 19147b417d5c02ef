//! Tokens on disk: a header, the ids, and where each document starts; in one file or several.

mod header;
mod joined;
mod read;
mod split_writer;
mod write;

pub use joined::Shard;
pub(crate) use split_writer::{ShardShape, SplitWriter};
