//! Models that travel: a GPT-2 from Hugging Face comes in, and what was trained here goes out to
//! where people work.
//!
//! [`ForeignModel::open`] reads a folder of `transformers` and [`ForeignModel::write`] makes it a
//! model of ours; [`export`] goes the other way. Both move one tensor at a time, so that memory
//! is no limit, and refuse what would be another model on the other side.

mod card;
mod config;
mod error;
mod export;
mod files;
mod head;
mod import;
mod names;
mod weights;

pub use error::ExchangeError;
pub use export::export;
pub use import::ForeignModel;
