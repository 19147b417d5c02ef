//! The run directory: what training leaves behind, and what it can go on from.

pub mod checkpoint;
mod crc32c;
mod events;
mod folder;
mod manifest;
mod tensorboard;

pub use checkpoint::FileRecord;
pub use events::{Event, EventLog, read_events};
pub use folder::{Differences, RunFolder};
pub use manifest::{CorpusRecord, Manifest};
pub use tensorboard::TensorBoard;
