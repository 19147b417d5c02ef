//! Decoding chosen by measurement: the settings there are, and the search among them.
//!
//! A [`Space`] says which [`Point`] stands for which strategy; [`search`] proposes points to a
//! [`Judge`], who writes texts, measures their distance to human text and keeps the record. What the
//! search proposes depends on the seed and the distances alone.

mod search;
mod space;

pub use search::{Judge, Judged, Size, search};
pub use space::{Point, Space};
