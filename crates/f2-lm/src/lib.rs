//! The GPT-2 decoder with plain and frequency-factorised heads: training, checkpoints, generation
//! and perplexity.
//!
//! In the order of a run: [`config`] holds the settings, [`model`] the decoder on a device of
//! `f2-engine`, [`batch`] the tokens of every step and [`schedule`] its learning rate,
//! [`objective`] the losses, [`train`] the training loop and [`run`] the run folder on the disk.
//! [`decode`] generates text and [`perplexity`] scores it, both on one device or on several
//! [`Devices`]; [`embed`] computes hidden states. [`exchange`] imports and exports models.

pub mod batch;
pub mod bench;
pub mod config;
pub mod decode;
mod devices;
pub mod embed;
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

pub use devices::{Devices, Parts, Worker};
pub use error::Error;
