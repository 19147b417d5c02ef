//! Files that are either whole or absent.
//!
//! A reader must never meet half a corpus or half a checkpoint, whatever killed the writer.
//! So everything is written under a temporary name beside its final one, synced to the disk,
//! and renamed: [`write_atomically`] for one file, [`StagedFolder`] for several that belong
//! together. Errors name the path.

mod error;
mod file;
mod folder;

pub use error::{ReadError, WriteError};
pub use file::{check_writable, read_text, write_atomically, write_text_atomically};
pub use folder::StagedFolder;
