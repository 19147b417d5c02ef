//! The GPT-2 decoder: pre-norm blocks, GELU, learned positions, a final norm, and one of two
//! heads.
//!
//! [`Decoder`] is the layout of the parameters and [`Model`] holds their values on a device.
//! `block.rs` computes one block, forward and backward; `passes.rs` runs all blocks over a whole
//! batch and `incremental.rs` over new tokens, with those before them in a key-value cache. A
//! [`Workspace`] holds the buffers of a batch; a [`Network`] is a model in training.

mod block;
mod decoder;
mod greedy;
mod incremental;
mod initialise;
mod network;
mod passes;
mod work;
mod workspace;

pub use block::Block;
pub use decoder::{Decoder, Model, ModelShape};
pub use greedy::GreedyContinuation;
pub use incremental::{Feed, Incremental};
pub use network::Network;
use passes::Activations;
pub use work::Work;
pub use workspace::{Batch, Handover, Recordings, Workspace};
