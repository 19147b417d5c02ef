//! The GPT-2 decoder with plain and frequency factorised heads.

pub mod config;
mod error;

pub use error::Error;
