//! The buffers of a forward and backward pass.

use f2_engine::{Device, Error};

use super::Decoder;
use super::block::{ActivationGradients, BlockActivations, Residual};

/// The activations a forward pass saves for its backward pass, and the gradients of that,
/// allocated once for the largest batch.
pub(super) struct Activations<D: Device> {
    /// The residual stream before the first block, then after each branch: `2 · layers + 1`.
    pub(super) residuals: Vec<Residual<D>>,
    pub(super) blocks: Vec<BlockActivations<D>>,
    /// Of each block's attention, `[heads, positions]`.
    pub(super) log_sums: Vec<D::Floats>,
    /// The output of a branch, added to the residual stream, and later its gradient, `[positions, width]`.
    pub(super) branch: D::Activations,
    pub(super) gradients: ActivationGradients<D>,
}

impl<D: Device> Activations<D> {
    /// Room for batches of up to `positions` positions.
    pub(super) fn new(device: &D, decoder: &Decoder, positions: usize) -> Result<Self, Error> {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let columns = |columns: usize| device.activations(positions * columns);
        let residuals = (0..=2 * model.layers).map(|_| Residual::new(device, model, positions));
        let blocks = (0..model.layers).map(|_| BlockActivations::new(device, model, positions));
        let log_sums = (0..model.layers).map(|_| device.floats(positions * model.heads));
        Ok(Self {
            residuals: residuals.collect::<Result<_, Error>>()?,
            blocks: blocks.collect::<Result<_, Error>>()?,
            log_sums: log_sums.collect::<Result<_, Error>>()?,
            branch: columns(width)?,
            gradients: ActivationGradients {
                normed: columns(width)?,
                stream: columns(width)?,
                wide: columns(inner.max(3 * width))?,
            },
        })
    }

    /// The bytes [`new`](Self::new) asks the device for.
    pub(super) fn bytes(decoder: &Decoder, positions: usize) -> usize {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let residuals = 2 * model.layers + 1;
        let activations = model.layers * (4 * width + 2 * inner)
            + residuals * 2 * width
            + 3 * width
            + inner.max(3 * width);
        let floats = model.layers * model.heads + residuals * 2;
        positions * (activations * D::ACTIVATION_BYTES + floats * size_of::<f32>())
    }

    /// The hidden states the head reads, `[positions, width]`.
    pub(super) fn hidden(&self) -> &D::Activations {
        &self.residuals[self.residuals.len() - 1].normed
    }

    /// The hidden states, and where the objective puts their gradient.
    pub(super) fn hidden_and_gradient(&mut self) -> (&D::Activations, &mut D::Activations) {
        (&self.residuals[self.residuals.len() - 1].normed, &mut self.gradients.normed)
    }
}
