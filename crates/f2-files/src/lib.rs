//! Files that are either whole or absent.
//!
//! A reader must never meet half a corpus or half a checkpoint, whatever killed the writer.
//! So everything is written under a temporary name beside its final one, synced to the disk,
//! and renamed: [`write_atomically`] for one file, [`StagedFolder`] for several that belong
//! together. Symbolic links are followed, and devices and pipes written into. What a killed
//! writer leaves under a temporary name is swept by the next one. Files of one folder are bound
//! together by [`FileRecord`]s in a file that is itself [sealed](seal), and are [regular
//! files](regular_file).
//!
//! A folder has one writer at a time, which a [`Lock`] sees to. All changes go through [`disk`],
//! where a test makes any of them fail ([`fault`]). Errors name the path.

mod claim;
mod destination;
pub mod disk;
mod error;
mod exchange;
pub mod fault;
mod file;
mod folder;
mod holder;
mod inside;
mod leftover;
mod lock;
mod read;
mod record;
mod seal;

pub use disk::OutputFile;
pub use error::{ReadError, WriteError};
pub use file::{check_writable, write_atomically, write_text_atomically};
pub use folder::{StagedFolder, remove_folder_at_once};
pub use holder::Holder;
pub use inside::{is_file_name, regular_file};
pub use leftover::sweep;
pub use lock::{Lock, LockError};
pub use read::{read_bytes, read_text, unmarked};
pub use record::FileRecord;
pub use seal::{is_sealed, seal};
