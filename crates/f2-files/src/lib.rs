//! Files and folders that are either complete or absent.
//!
//! A reader must never see half a corpus or half a checkpoint, however the writer was killed.
//! So everything is written under a temporary name in the same folder, synced to the disk,
//! and renamed: [`write_atomically`] for one file, [`StagedFolder`] for several that belong
//! together. Symbolic links are followed; devices and pipes are written to directly. Temporary
//! files left by a killed writer are removed by the next one. [`FileRecord`]s hold the lengths and
//! hashes of the files of a folder, in a file that is itself [sealed](seal); all of them must be
//! [regular files](regular_file).
//!
//! A [`Lock`] ensures that a folder has one writer at a time. Changes go through [`disk`],
//! where tests can make any of them fail ([`fault`]). Errors name the path.

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
