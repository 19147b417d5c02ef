//! The GPT-2 decoder with plain and frequency factorised heads.

pub mod batch;
pub mod config;
mod error;
pub mod schedule;

pub use error::Error;
