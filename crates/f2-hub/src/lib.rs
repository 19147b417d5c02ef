//! Models and datasets by their names on the Hugging Face hub.
//!
//! The files of a [`Repository`] are looked up in the local cache of Python's `huggingface_hub`,
//! and missing ones are downloaded into it: each program finds what the other has downloaded. The
//! usual environment variables are respected: `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`
//! and `HF_HUB_OFFLINE`.
//!
//! Downloads need the feature `download`. Interrupted ones are resumed, and every file is verified
//! against the hash that the hub announced before it gets its final name.

mod cache;
#[cfg(feature = "download")]
mod download;
mod environment;
mod error;
mod hub;
mod repository;

pub use cache::Cache;
pub use environment::Environment;
pub use error::Error;
pub use hub::{Hub, Observer, Snapshot};
pub use repository::{Kind, Repository};
