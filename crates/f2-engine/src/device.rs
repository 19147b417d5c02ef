//! A device: the operations it runs, and its properties.

use crate::Error;
use crate::ops::{
    Attention, Dropouts, Embeddings, Exchange, Heads, Linears, Memory, Norms, Optimiser,
};

/// Memory and operations.
///
/// **Asynchronous.** An operation is enqueued and returns nothing. Only methods that read results
/// wait, and they report earlier failures. A training step needs none of them.
///
/// **Static memory.** Buffers are allocated when a model is built, not by operations.
///
/// **Precision.** [`Activations`](Memory::Activations) have the device's working precision (`f32`
/// on the CPU, bf16 or `f32` on CUDA); parameters, gradients, moments, statistics and losses are
/// `f32`.
/// [`Weights`](Memory::Weights) may hold a rounded copy beside the `f32` values, which
/// [`adamw`](Optimiser::adamw) and [`write_weights`](Memory::write_weights) update.
///
/// **Arguments** are in a fixed order: sizes, parameters, inputs, outputs. Buffers may be longer
/// than the operation needs. The prefix `d_` denotes the gradient with respect to a value.
/// Gradients of parameters are added to (`+=`), so micro-batches accumulate; gradients of
/// activations are overwritten unless stated otherwise. Reductions have a fixed order: equal
/// inputs give equal bits.
pub trait Device:
    Memory + Dropouts + Embeddings + Norms + Linears + Attention + Heads + Optimiser + Exchange
{
    /// A recorded sequence of operations, for [`replay`](Self::replay).
    type Recording: Default;

    /// Whether operations run asynchronously, so that the host can enqueue more meanwhile.
    const RUNS_BEHIND: bool;
    /// The number of sequences generated together beyond which throughput hardly rises.
    const SEQUENCES: usize;

    /// The device's name, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Bytes currently available in the device's own memory; `None` if it shares the host's.
    fn available_memory(&self) -> Option<u64> {
        None
    }

    /// Measures the floating-point operations per second of a large matrix product.
    fn measured_peak(&self) -> f64;

    /// Waits for all enqueued operations and reports the first failure.
    fn synchronise(&self) -> Result<(), Error>;

    /// Runs `body`, whose operations, buffers and sizes must be the same in every call. Once a
    /// device has recorded them it replays the recording without calling `body`, which must
    /// therefore have no effects beyond the device.
    fn replay(&self, recording: &mut Self::Recording, body: &mut dyn FnMut());
}
