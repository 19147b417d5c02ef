//! NVIDIA GPUs: matrix products by cuBLASLt, everything else by kernels compiled for the installed
//! GPU; steps of fixed shape are replayed as CUDA graphs.
//!
//! The CUDA libraries are loaded at run time. Each family of operations has a file or folder with
//! the same name as in `ops/`: `norm.cu` contains the kernels, `norm.rs` launches them. They build
//! on cuBLASLt (`product/`) and the driver: compilation, launches, streams, copies and graphs
//! (`runtime/`).

#![allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]

mod attention;
mod dropout;
mod embedding;
mod exchange;
mod head;
mod linear;
mod memory;
mod norm;
mod optimiser;
mod precision;
mod product;
mod runtime;

use std::marker::PhantomData;

pub use exchange::{NcclId, NcclPeers, nccl_version};
pub use precision::{Bf16, F32, Precision};
pub use product::cublaslt_is_present;
pub use runtime::{compile_kernels, nvrtc_is_present};

use crate::{Device, Error};
use linear::LastSums;
use product::Products;
use runtime::{Kernels, Lists, Recording, Stream};

/// The device's name in errors.
const DEVICE: &str = "cuda";

/// An NVIDIA GPU as a [`Device`], of compute capability 8.0 or later.
///
/// Activations and matrix products are bf16, or `f32` with [`F32`]; parameters, gradients, moments,
/// statistics and losses are always `f32`.
pub struct Cuda<P: Precision = Bf16> {
    // Dropped in this order: buffers before the stream they were allocated for.
    products: Products,
    kernels: Kernels,
    scratch: memory::Scratch,
    lists: Lists,
    last_sums: LastSums,
    stream: Stream,
    precision: PhantomData<P>,
}

impl<P: Precision> Cuda<P> {
    /// Opens GPU `ordinal` and loads the kernels for it, from the cache or newly compiled.
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

    /// The GPU's model, such as `NVIDIA H200`.
    pub fn model(&self) -> Result<String, Error> {
        self.stream.model()
    }
}

impl<P: Precision> Device for Cuda<P> {
    type Recording = Recording;

    const RUNS_BEHIND: bool = true;
    // A decoding step reads all weights once; with this many texts its products take longer.
    const SEQUENCES: usize = 2048;

    fn name(&self) -> &'static str {
        DEVICE
    }

    fn available_memory(&self) -> Option<u64> {
        self.stream.available_memory().ok()
    }

    fn measured_peak(&self) -> f64 {
        self.peak().unwrap_or(f64::NAN)
    }

    fn synchronise(&self) -> Result<(), Error> {
        self.stream.synchronise()
    }

    fn replay(&self, recording: &mut Recording, body: &mut dyn FnMut()) {
        recording.replay(&self.stream, body);
    }
}

impl<P: Precision> std::fmt::Debug for Cuda<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Cuda({})", P::NAME)
    }
}

/// Checks for a driver and at least one GPU; the error says what is missing.
pub fn cuda_is_present() -> Result<(), Error> {
    runtime::find_driver()
}
