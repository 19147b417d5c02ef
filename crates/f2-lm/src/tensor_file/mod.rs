//! Safetensors files of any size, one tensor in memory at a time.

mod read;
mod write;

pub(crate) use read::{TensorFile, TensorFileError};
pub(crate) use write::{Planned, WriteFailure, float_bytes, write};
