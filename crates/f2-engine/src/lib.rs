//! The numerics of F²: the operations of a language model, on the CPU and on NVIDIA GPUs.
//!
//! The engine is a fixed list of operations with hand-written backward passes, without tensors or
//! automatic differentiation: the decoder's backward pass is always the same, and an objective only
//! provides the gradient of its loss with respect to the last hidden states and the head.
//!
//! - [`Device`] comprises all operations, grouped into traits: [`Memory`], [`Embeddings`],
//!   [`Norms`], [`Linears`], [`Attention`], [`Heads`], [`Optimiser`], [`Dropouts`] for the masks,
//!   and [`Exchange`] between ranks.
//! - [`Layout`] assigns every [`Parameter`] its range of one flat buffer.
//! - [`Cpu`] implements them on all cores in `f32`, optionally with matrix products in bf16;
//!   [`Cuda`] in bf16 or `f32` on an NVIDIA GPU.
//!
//! ```
//! use f2_engine::prelude::*;
//! use f2_engine::{Cpu, Layout, Linear};
//!
//! let device = Cpu::new(1)?;
//! let mut layout = Layout::new();
//! let linear = Linear {
//!     weight: layout.add("weight", &[2, 3], true),
//!     bias: layout.add("bias", &[2], false),
//! };
//! let mut weights = device.weights(layout.len())?;
//! device.write_weights(&[1.0, 0.0, 2.0, 0.0, 1.0, 0.0], linear.weight, &mut weights);
//! device.write_weights(&[0.5, 0.0], linear.bias, &mut weights);
//!
//! let mut x = device.activations(3)?;
//! let mut y = device.activations(2)?;
//! device.write_activations(&[1.0, 2.0, 3.0], &mut x);
//! device.linear(1, linear, &weights, &x, &mut y);
//!
//! let mut result = [0.0; 2];
//! device.read_activations(&y, &mut result)?;
//! assert_eq!(result, [7.5, 2.0]);
//! # Ok::<(), f2_engine::Error>(())
//! ```

mod cpu;
mod cuda;
mod device;
mod error;
mod ops;
mod parameters;
mod random;

pub use cpu::{Cpu, ProductSpeeds, Simd, check_threads};
pub use cuda::{
    Bf16, Cuda, F32, NcclId, NcclPeers, Precision, compile_kernels, cublaslt_is_present,
    cuda_is_present, nccl_version, nvrtc_is_present,
};
pub use device::Device;
pub use error::Error;
pub use ops::{
    AdamW, Attention, AttentionHeads, ClassSampling, Classes, Decay, Drawn, Dropout, Dropouts,
    Embedding, Embeddings, Exchange, Head, Heads, HostPeers, IGNORED, Labels, Linear, Linears,
    Memory, Moment, Moments, NORM_BLOCK, Norm, Norms, Optimiser, Partition, Penalties, Rendezvous,
    Sampling, Scatter, Sequences, Span, TokenSampling, Weighting,
};
pub use parameters::{Layout, NamedParameter, Parameter};
pub use random::{Philox, philox};

/// The traits of a device, for calling operations on a concrete one. Code that is generic over
/// [`Device`] needs no other import.
pub mod prelude {
    pub use crate::Device as _;
    pub use crate::ops::{
        Attention as _, Dropouts as _, Embeddings as _, Exchange as _, Heads as _, Linears as _,
        Memory as _, Norms as _, Optimiser as _,
    };
}
