//! The CPU: all cores, the instruction set found at run time; `f32`, and products in bf16 where asked.

#![allow(
    clippy::inline_always,
    reason = "a kernel is compiled anew inside the version for each instruction set"
)]
#![allow(clippy::needless_range_loop, reason = "several slices share one index, lane by lane")]
#![allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]

mod adamw;
mod add;
mod attention;
mod cache;
mod dot;
mod dropout;
mod embedding;
mod f2_head;
mod gelu;
mod head;
mod implementation;
mod linear;
mod memory;
mod norm;
mod peak;
mod posterior;
mod product;
mod reorder;
mod scratch;
mod shared;
mod simd;
mod softmax_head;
mod softmax_rows;
mod speed;
mod targets;
mod team;
mod threads;

use std::sync::Mutex;

use cache::Cache;
use embedding::Tokens;
use memory::Buffer;
use product::{Precision, Products};
pub use simd::Simd;
pub use speed::ProductSpeeds;
use targets::Targets;
use threads::Threads;

use crate::Error;

/// The CPU as a [`Device`](crate::Device).
#[derive(Debug)]
pub struct Cpu {
    threads: Threads,
    precision: Precision,
    /// Sums over rows or blocks, one share each, before they are added in order.
    partial: Mutex<Vec<f32>>,
}

impl Cpu {
    /// A CPU that works on this many threads; 0 means one per core.
    pub fn new(threads: usize) -> Result<Self, Error> {
        Simd::chosen()?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores() } else { threads };
        let threads = Threads::new(threads)?;
        Ok(Self { threads, precision: Precision::F32, partial: Mutex::default() })
    }

    /// [`Self::new`], with the operands of matrix products rounded to bf16: many times faster where
    /// the processor has AMX. Weights, activations between products, sums and the optimiser stay
    /// `f32`.
    pub fn with_bf16(threads: usize) -> Result<Self, Error> {
        let cpu = Self::new(threads)?;
        if !Simd::has_bf16() {
            return Err(Error::NoBf16 { simd: Simd::used().name() });
        }
        Ok(Self { precision: Precision::Bf16, ..cpu })
    }

    fn products(&self) -> Products<'_> {
        Products { threads: &self.threads, precision: self.precision }
    }

    /// How many threads share the work.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Lends room for `len` partial sums, kept from one operation to the next.
    fn with_partial<R>(&self, len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
        let mut partial = self.partial.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if partial.len() < len {
            partial.resize(len, 0.0);
        }
        body(&mut partial[..len])
    }
}
