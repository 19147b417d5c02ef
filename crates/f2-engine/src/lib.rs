//! The numerics of F²: what a language model needs from a device, and the CPU and GPU that give it.
//!
//! The engine is a fixed list of operations with hand-written backward passes, no tensors and
//! no automatic differentiation: the decoder's backward pass is fixed, and every objective ends
//! in one place, the gradient of its loss with respect to the last hidden states and the head.
//!
//! - [`Device`] is the list: memory, the decoder's operations, the heads' losses, the optimiser.
//! - [`Layout`] names the ranges of the one flat buffer all [`Parameter`]s live in.
//! - [`Cpu`] implements the list on all cores in `f32`, or with products in bf16; [`Cuda`] in bf16 or
//!   `f32` on an NVIDIA GPU.
//!
//! ```
//! use f2_engine::{Cpu, Device, Layout, Linear};
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

mod batch;
mod cpu;
mod cuda;
mod device;
mod draw;
mod error;
mod layers;
mod optimiser;
mod parameters;
mod random;
mod targets;

pub use batch::{Dropout, Heads, Moment, Sequences, Span};
pub use cpu::{Cpu, ProductSpeeds, Simd};
pub use cuda::{
    Bf16, Cuda, F32, Precision, compile_kernels, cublaslt_is_present, cuda_is_present,
    nvrtc_is_present,
};
pub use device::Device;
pub use draw::{ClassLaw, DrawHead, Drawn, TokenLaw};
pub use error::Error;
pub use layers::{Embedding, F2Head, Linear, Norm, SoftmaxHead};
pub use optimiser::{AdamW, Decay, Moments};
pub use parameters::{Layout, NamedParameter, Parameter};
pub use random::{Philox, philox};
pub use targets::{IGNORED, Labels, Penalties, Weighting};
