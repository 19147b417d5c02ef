//! Tuning of decoding: the space of settings, and the search in it.
//!
//! A [`Space`] maps each [`Point`] to a strategy; [`search`] proposes points to a [`Judge`], which
//! generates texts, measures their distance to human text and keeps a record. The proposals depend
//! only on the seed and the distances.

mod search;
mod space;

pub use search::{Judge, Judged, Size, search};
pub use space::{Point, Space};
