//! Token shards: a header, the ids, and the start of each document; one file or several.

mod header;
mod joined;
mod read;
mod split_writer;
mod write;

pub use joined::Shard;
pub(crate) use split_writer::{ShardShape, SplitWriter};
