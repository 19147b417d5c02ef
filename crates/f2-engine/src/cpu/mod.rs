//! The CPU device: all cores, with the instruction set selected at run time; `f32`, with products
//! in bf16 if requested.
//!
//! Each family of operations has a file or folder named as in `ops/`. They are built on matrix
//! products (`product/`), vector kernels (`simd/`) and a thread pool (`threads/`).

#![allow(
    clippy::inline_always,
    reason = "a kernel is compiled separately for each instruction set"
)]
#![allow(clippy::needless_range_loop, reason = "several slices share one index, lane by lane")]
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
mod product;
mod simd;
mod threads;

use std::sync::Mutex;

pub use product::ProductSpeeds;
use product::{FEW_ROWS, Precision, Products};
pub use simd::Simd;
use threads::Threads;
pub use threads::check_threads;

use crate::{Device, Error};

/// The CPU as a [`Device`].
#[derive(Debug)]
pub struct Cpu {
    threads: Threads,
    precision: Precision,
    /// Scratch space for partial sums of blocks, which are then added in order.
    partial: Mutex<Vec<f32>>,
}

impl Cpu {
    /// A CPU device with this many threads; 0 means one per core.
    pub fn new(threads: usize) -> Result<Self, Error> {
        Simd::chosen()?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores() } else { threads };
        let threads = Threads::new(threads)?;
        Ok(Self { threads, precision: Precision::F32, partial: Mutex::default() })
    }

    /// [`Self::new`], with the operands of matrix products rounded to bf16: many times faster if
    /// the processor has AMX. Weights, activations between products, sums and the optimiser stay
    /// `f32`.
    pub fn with_bf16(threads: usize) -> Result<Self, Error> {
        let cpu = Self::new(threads)?;
        if !Simd::has_bf16() {
            return Err(Error::NoBf16 { simd: Simd::used().name() });
        }
        Ok(Self { precision: Precision::Bf16, ..cpu })
    }

    /// Matrix products in this device's precision, on its threads.
    fn products(&self) -> Products<'_> {
        Products { threads: &self.threads, precision: self.precision }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Calls `body` with a buffer for `len` partial sums, which all operations share.
    fn with_partial<R>(&self, len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
        let mut partial = self.partial.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if partial.len() < len {
            partial.resize(len, 0.0);
        }
        body(&mut partial[..len])
    }
}

impl Device for Cpu {
    type Recording = ();

    const RUNS_BEHIND: bool = false;
    const SEQUENCES: usize = FEW_ROWS;

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn measured_peak(&self) -> f64 {
        self.products().measured_peak()
    }

    fn synchronise(&self) -> Result<(), Error> {
        Ok(())
    }

    fn replay(&self, (): &mut (), body: &mut dyn FnMut()) {
        body();
    }
}
