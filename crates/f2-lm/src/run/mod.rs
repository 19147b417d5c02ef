//! The run folder: settings, manifest, log and checkpoints, and the models saved in it.

pub mod checkpoint;
pub(crate) mod corpus_ids;
mod events;
mod folder;
mod manifest;
mod model_file;
mod path_text;
mod saved_model;
mod settings_file;
mod tensorboard;
mod vocabulary;

pub use events::{Event, EventLog, read_events};
pub use folder::{CHECKPOINTS, CONFIG, Differences, EVENTS, RunFolder};
pub use manifest::{CorpusRecord, InitialRecord, Manifest};
pub(crate) use model_file::ModelFile;
pub use saved_model::{Pick, SavedModel};
pub use tensorboard::TensorBoard;
pub use vocabulary::{TextStream, Vocabulary};
