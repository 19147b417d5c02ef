//! The GPT-2 decoder: pre-norm blocks, GELU, learned positions, a final norm, and one of two
//! heads.

mod activations;
mod backward;
mod continuation;
mod decoder;
mod forward;
mod incremental;
mod initialise;
mod network;
mod pass;
mod work;

pub use activations::Activations;
pub use continuation::Continuation;
pub use decoder::{Block, Decoder, Head, ModelShape};
pub use incremental::{Feed, Incremental};
pub use network::{Batch, Network, Recordings};
pub use pass::Pass;
pub use work::Work;
