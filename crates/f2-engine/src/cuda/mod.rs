//! NVIDIA GPUs: matrix products by cuBLASLt, everything else by kernels compiled for the GPU that
//! is there, steps of fixed shape replayed as graphs.
//!
//! CUDA is looked for at run time. A kernel family is a pair of files by one name: `norm.cu` holds
//! the kernels, `norm.rs` launches them.

#![allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]

mod attention;
mod cache;
mod choice;
mod column_sums;
mod compile;
mod draw;
mod embedding;
mod f2_head;
mod graph;
mod head;
mod implementation;
mod kernel_cache;
mod kernels;
mod launch;
mod linear;
mod memory;
mod norm;
mod optimiser;
mod peak;
mod pinned;
mod plan;
mod posterior;
mod precision;
mod product;
mod reading;
mod softmax_head;
mod stream;
mod targets;
mod tokens;
mod upload;

use std::marker::PhantomData;

pub use compile::{compile_kernels, nvrtc_is_present};
pub use precision::{Bf16, F32, Precision};
pub use product::cublaslt_is_present;

use crate::Error;
use column_sums::LastSums;
use kernels::Kernels;
use product::Products;
use stream::Stream;
use upload::Lists;

/// What errors call the device.
const DEVICE: &str = "cuda";

/// An NVIDIA GPU as a [`Device`](crate::Device), of compute capability 8.0 or later.
///
/// Activations and matrix products are bf16, or `f32` with [`F32`]; parameters, gradients, moments,
/// statistics and losses are `f32` in either.
pub struct Cuda<P: Precision = Bf16> {
    // Dropped in this order: what lives on the stream goes before it.
    products: Products,
    kernels: Kernels,
    scratch: memory::Scratch,
    lists: Lists,
    last_sums: LastSums,
    stream: Stream,
    precision: PhantomData<P>,
}

impl<P: Precision> Cuda<P> {
    /// Opens GPU number `ordinal`, compiles the kernels for it or takes them from the cache.
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        let stream = Stream::open(ordinal)?;
        let kernels = Kernels::load::<P>(&stream)?;
        let products = Products::new(&stream, P::TYPE)?;
        Ok(Self {
            products,
            kernels,
            scratch: memory::Scratch::default(),
            lists: Lists::default(),
            last_sums: LastSums::default(),
            stream,
            precision: PhantomData,
        })
    }

    /// The GPU's own name, such as `NVIDIA H200`.
    pub fn model(&self) -> Result<String, Error> {
        self.stream.model()
    }
}

impl<P: Precision> std::fmt::Debug for Cuda<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Cuda({})", P::NAME)
    }
}

/// Whether a driver and at least one GPU are there; if not, why not.
pub fn cuda_is_present() -> Result<(), Error> {
    stream::find_driver()
}
