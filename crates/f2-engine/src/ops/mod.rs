//! The operations of a device: each file holds one trait and the handles and settings of its
//! operations; `partition.rs` divides the flat buffers among ranks. The implementations are in
//! files of the same names in `cpu/` and `cuda/`.

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
