//! A model in training: with its gradients and the loss of the step in progress.

use f2_engine::{Device, Penalties, Weighting};

use super::{Batch, Decoder, Handover, Model, Recordings, Workspace};
use crate::Error;

/// A model with the buffers of its forward and backward passes.
pub struct Network<D: Device> {
    /// The model.
    pub model: Model<D>,
    /// The gradient so far, in the layout of the parameters.
    pub gradients: D::Floats,
    /// The batch in progress.
    pub workspace: Workspace<D>,
    pub(super) predictions: D::Indices,
    /// One number: the loss so far.
    pub(crate) total: D::Floats,
}

impl<D: Device> Network<D> {
    /// Allocates buffers for batches of up to `positions` positions, and draws initial values.
    pub fn new(device: D, decoder: Decoder, positions: usize, seed: u64) -> Result<Self, Error> {
        Self::recomputing(device, decoder, positions, seed, false)
    }

    /// Like [`new`](Self::new); with `recomputes` the backward pass recomputes the activations of
    /// blocks instead of having them saved.
    pub fn recomputing(
        device: D,
        decoder: Decoder,
        positions: usize,
        seed: u64,
        recomputes: bool,
    ) -> Result<Self, Error> {
        let model = Model::initialised(device, decoder, seed)?;
        let device = &model.device;
        Ok(Self {
            gradients: device.floats(model.decoder.layout.len())?,
            workspace: Workspace::recomputing(&model, positions, recomputes)?,
            predictions: device.indices(positions)?,
            total: device.floats(1)?,
            model,
        })
    }

    /// Computes the hidden states of a batch.
    pub fn forward(&mut self, batch: Batch<'_>, recordings: &mut Recordings<D>) {
        self.workspace.forward(&self.model, batch, recordings);
    }

    /// Sets the targets of the batch, and the weight of each position. `ids` are
    /// next tokens or [`f2_engine::IGNORED`].
    pub fn set_targets(
        &mut self,
        ids: &[u32],
        weights: Weighting<'_>,
        penalties: Option<Penalties<'_>>,
    ) {
        self.workspace.set_targets(&self.model, ids, weights, penalties);
    }

    /// Changes the weight of each position, once the [`predictions`](Self::predictions) of the
    /// batch are known.
    pub fn reweigh_targets(&mut self, weights: &[f32]) {
        self.model.device.reweigh_targets(weights, &mut self.workspace.targets);
    }

    /// The most likely token of every position that has a target, into `predictions`.
    pub fn predictions(&mut self, predictions: &mut [u32]) -> Result<(), Error> {
        let Model { device, decoder, weights } = &self.model;
        let Workspace { activations, targets, .. } = &mut self.workspace;
        let (head, hidden) = (&decoder.head, activations.hidden());
        device.predictions(head, weights, targets, hidden, &mut self.predictions);
        Ok(device.read_indices(&self.predictions, predictions)?)
    }

    /// Adds the loss of the batch's targets to [`loss`](Self::loss) and its gradient
    /// to [`gradients`](Self::gradients).
    /// Only the last backward pass of a step has a `handover`: it takes parts of the gradient as
    /// soon as they are final. Parts it was not offered are final afterwards, too.
    pub fn backward(
        &mut self,
        recordings: &mut Recordings<D>,
        handover: Option<&mut dyn Handover<D>>,
    ) -> Result<(), Error> {
        let Self { model, gradients, workspace, total, .. } = self;
        workspace.backward(model, recordings, total, gradients, handover)
    }

    /// The sum of the losses since [`clear_loss`](Self::clear_loss), in nats.
    pub fn loss(&self) -> Result<f32, Error> {
        let mut loss = [0.0];
        self.model.device.read_floats(&self.total, 0, &mut loss)?;
        Ok(loss[0])
    }

    /// Resets the sum of losses.
    pub fn clear_loss(&mut self) {
        self.model.device.zero_floats(&mut self.total);
    }

    /// Begins to copy the [`loss`](Self::loss) to the host.
    pub fn begin_reading_loss(&self, to: &mut D::Reading) {
        self.model.device.begin_reading(&self.total, to);
    }
}
