//! The operations of a device, by family: each file holds one trait and the handles and settings
//! its operations take; `partition.rs` says who owns what where ranks are several. `cpu/` and `cuda/` have files of the same names with the implementations.

mod attention;
mod dropout;
mod embedding;
mod exchange;
mod head;
mod linear;
mod memory;
mod norm;
mod optimiser;
mod partition;

pub use attention::{Attention, AttentionHeads};
pub use dropout::{Dropout, Dropouts, Moment};
pub use embedding::{Embedding, Embeddings, Sequences, Span};
pub use exchange::{Exchange, HostPeers, Rendezvous, Scatter};
pub use head::{
    ClassSampling, Classes, Drawn, Head, Heads, IGNORED, Labels, Penalties, Sampling,
    TokenSampling, Weighting,
};
pub use linear::{Linear, Linears};
pub use memory::Memory;
pub use norm::{Norm, Norms};
pub use optimiser::{AdamW, Decay, Moments, NORM_BLOCK, Optimiser};
pub use partition::Partition;
