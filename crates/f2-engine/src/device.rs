//! A device: all families of operations, and the machine they run on.

use crate::Error;
use crate::ops::{
    Attention, Dropouts, Embeddings, Exchange, Heads, Linears, Memory, Norms, Optimiser,
};

/// Memory and operations.
///
/// **Asynchronous.** An operation is enqueued and returns nothing. Only the methods that read wait,
/// and they report earlier failures. A training step needs none of them.
///
/// **Static memory.** Buffers are allocated when a model is built; operations allocate nothing.
///
/// **Precision.** [`Activations`](Memory::Activations) have the device's working precision (`f32`
/// on the CPU, bf16 on CUDA); parameters, gradients, moments, statistics and losses are `f32`.
/// [`Weights`](Memory::Weights) may carry a rounded copy beside the `f32` values, which
/// [`adamw`](Optimiser::adamw) and [`write_weights`](Memory::write_weights) renew.
///
/// **Arguments** come in one order: sizes, parameters, what is read, what is written. Buffers may
/// be longer than the operation needs. A `d_` before a name is the gradient with respect to it.
/// Gradients of parameters are added to (`+=`), so micro-batches accumulate; gradients of
/// activations are overwritten unless said otherwise. Reductions have a fixed order: equal
/// input gives equal bits.
pub trait Device:
    Memory + Dropouts + Embeddings + Norms + Linears + Attention + Heads + Optimiser + Exchange
{
    /// Operations recorded for [`replay`](Self::replay).
    type Recording: Default;

    /// Whether operations run later than they are enqueued, so that the host can enqueue more
    /// meanwhile.
    const RUNS_BEHIND: bool;
    /// Texts generated at a time that make good use of the device: more would gain little.
    const SEQUENCES: usize;

    /// The device's name, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Bytes available now in the device's own memory; none where it is the host's.
    fn available_memory(&self) -> Option<u64> {
        None
    }

    /// The floating-point operations per second of a large matrix product, measured now.
    fn measured_peak(&self) -> f64;

    /// Waits for all operations and reports the first failure.
    fn synchronise(&self) -> Result<(), Error>;

    /// Runs `body`, whose operations, buffers and sizes are the same every time; a device that
    /// can record does so once and replays afterwards, so `body` must not touch anything but
    /// the device.
    fn replay(&self, recording: &mut Self::Recording, body: &mut dyn FnMut());
}
