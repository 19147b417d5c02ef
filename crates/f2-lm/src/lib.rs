//! The GPT-2 decoder with plain and frequency factorised heads: how it is configured, trained
//! and kept.
//!
//! In the order a run goes through them: [`config`] says what to do, [`model`] lays the decoder
//! out on a device of `f2-engine`, [`batch`] and [`schedule`] decide what a step sees and how far
//! it goes, [`objective`] turns hidden states into a loss, [`train`] puts them together, [`run`]
//! is the run folder on the disk, [`decode`] generates text, and [`perplexity`] scores it.
//! [`exchange`] imports and exports models.

pub mod batch;
pub mod bench;
pub mod config;
pub mod decode;
mod error;
pub mod exchange;
pub mod memory;
pub mod model;
pub mod objective;
pub mod perplexity;
pub mod run;
pub mod schedule;
mod tensor_file;
pub mod train;

pub use error::Error;
