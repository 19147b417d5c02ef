//! Import of GPT-2 and F² models from Hugging Face folders, and export to them.
//!
//! [`ForeignModel::open`] reads a folder of `transformers` and [`ForeignModel::write`] writes it as
//! a model of `f2`; [`export`] does the reverse. Both go tensor by tensor instead of loading the
//! whole model, and refuse models that the other side would compute differently. The Python code
//! that lets `transformers` run an F² model is in `remote/`.

mod card;
mod config;
mod error;
mod export;
mod files;
mod generation;
mod import;
mod names;
mod remote;
mod training;
mod weights;

pub use config::class as class_name;
pub use error::ExchangeError;
pub use export::export;
pub use files::check_is_free;
pub use import::ForeignModel;
