//! The forward and backward pass of a batch, and the buffers they need.

use std::collections::HashMap;

use f2_engine::{Device, Labels, Moment, Penalties, Sequences, Weighting};

use super::block::Pass;
use super::{Activations, Decoder, Model};
use crate::Error;

/// A batch of input tokens.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// How many sequences, and how long.
    pub sequences: Sequences,
    /// Their tokens, row by row.
    pub inputs: &'a [u32],
    /// The moment dropout is drawn at; `None` for no dropout.
    pub dropout: Option<Moment>,
}

/// Takes the gradient in parts, as the last backward pass of a step finishes them: from the end of
/// the flat buffer to its start.
pub trait Handover<D: Device> {
    /// Where each part begins. The first one ends at the end of the buffer, every other where the
    /// one before it begins; the last one begins at 0.
    fn starts(&self) -> Vec<usize>;

    /// Takes the next part, whose gradient is final.
    fn take(&mut self, device: &D, gradients: &D::Floats) -> Result<(), Error>;
}

/// The operations of passes over batches, all with dropout or all without, recorded on devices that
/// can record. A recording is only valid for the sizes it was made with, so every shape has its
/// own.
pub struct Recordings<D: Device> {
    /// By the number and length of the sequences.
    by_shape: HashMap<[usize; 2], Recorded<D>>,
}

/// The passes of batches of one shape.
struct Recorded<D: Device> {
    forward: D::Recording,
    backward: D::Recording,
    /// The stages of the backward pass that finish a part of the gradient, by the part's number.
    parts: Vec<D::Recording>,
    /// Whether the backward pass has been run: in its first run a device may measure which kernels
    /// are fastest.
    known: bool,
}

impl<D: Device> Default for Recordings<D> {
    fn default() -> Self {
        Self { by_shape: HashMap::new() }
    }
}

impl<D: Device> Recordings<D> {
    fn of(&mut self, Sequences { count, length }: Sequences) -> &mut Recorded<D> {
        self.by_shape.entry([count, length]).or_insert_with(|| Recorded {
            forward: D::Recording::default(),
            backward: D::Recording::default(),
            parts: Vec::new(),
            known: false,
        })
    }
}

/// The buffers of a batch's passes through a model: activations, targets and losses. All are
/// allocated when it is built; passes allocate nothing.
pub struct Workspace<D: Device> {
    pub(super) activations: Activations<D>,
    pub(super) tokens: D::Tokens,
    pub(super) targets: D::Targets,
    pub(super) clock: D::Clock,
    /// `[2, positions]`: the two parts of every position's loss.
    pub(super) losses: D::Floats,
    /// The shape of the batch in `activations`, and whether dropout was applied to it.
    pub(super) sequences: Sequences,
    pub(super) training: bool,
    positions: usize,
}

impl<D: Device> Workspace<D> {
    /// Buffers for batches of up to `positions` positions.
    pub fn new(model: &Model<D>, positions: usize) -> Result<Self, Error> {
        Self::recomputing(model, positions, false)
    }

    /// Like [`new`](Self::new); with `recomputes` only the inputs of blocks are saved: less memory,
    /// and the same bits.
    pub(super) fn recomputing(
        model: &Model<D>,
        positions: usize,
        recomputes: bool,
    ) -> Result<Self, Error> {
        let Model { device, decoder, .. } = model;
        Ok(Self {
            activations: Activations::new(device, decoder, positions, recomputes)?,
            tokens: device.tokens(positions)?,
            targets: device.targets(positions, &decoder.head)?,
            clock: device.clock()?,
            losses: device.floats(2 * positions)?,
            sequences: Sequences { count: 0, length: 0 },
            training: false,
            positions,
        })
    }

    /// The bytes of the activations of `positions` positions: of all, or with `recomputes` of the
    /// inputs of blocks.
    pub fn activation_bytes(decoder: &Decoder, positions: usize, recomputes: bool) -> u64 {
        Activations::<D>::bytes(decoder, positions, recomputes) as u64
    }

    /// The bytes that the head's logits and targets take.
    pub fn head_bytes(decoder: &Decoder, positions: usize) -> u64 {
        D::target_bytes(positions, &decoder.head) as u64
    }

    /// The most positions a batch may have.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Computes the hidden states of a batch.
    pub fn forward(&mut self, model: &Model<D>, batch: Batch<'_>, recordings: &mut Recordings<D>) {
        let Self { activations, tokens, clock, .. } = self;
        if let Some(moment) = batch.dropout {
            model.device.set_clock(moment, clock);
        }
        model.device.load_tokens(batch.inputs, tokens);
        (self.sequences, self.training) = (batch.sequences, batch.dropout.is_some());
        let pass = pass(model, batch.sequences, self.training, clock);
        model.device.replay(&mut recordings.of(batch.sequences).forward, &mut || {
            activations.forward(&pass, batch.sequences, tokens);
        });
    }

    /// The hidden states of the batch, `[positions, width]`.
    pub fn hidden(&self) -> &D::Activations {
        self.activations.hidden()
    }

    /// Sets the targets of the batch, and the weight of each position. `ids` are
    /// next tokens or [`f2_engine::IGNORED`].
    pub fn set_targets(
        &mut self,
        model: &Model<D>,
        ids: &[u32],
        weights: Weighting<'_>,
        penalties: Option<Penalties<'_>>,
    ) {
        let labels = Labels { ids, weights, penalties };
        model.device.load_targets(&model.decoder.head, &labels, &mut self.targets);
    }

    /// Writes the weighted negative log-likelihood of the batch's targets under the full posterior
    /// into `losses`, in two parts for each position.
    pub(super) fn likelihood(&mut self, model: &Model<D>) {
        let Self { activations, targets, losses, .. } = self;
        let Model { device, decoder, weights } = model;
        device.loss(&decoder.head, weights, targets, activations.hidden(), losses);
    }

    /// The negative log-likelihood of the batch's targets, in nats, summed in double precision.
    pub fn negative_log_likelihood(&mut self, model: &Model<D>) -> Result<f64, Error> {
        self.likelihood(model);
        let mut losses = vec![0.0; 2 * self.sequences.positions()];
        model.device.read_floats(&self.losses, 0, &mut losses)?;
        Ok(losses.iter().map(|loss| f64::from(*loss)).sum())
    }

    /// Adds the loss of the batch's targets to `total` and its gradient to `gradients`. With a
    /// `handover` the gradient is final afterwards, and the handover takes its parts as soon as
    /// they are; none in the first pass of a shape.
    pub(super) fn backward(
        &mut self,
        model: &Model<D>,
        recordings: &mut Recordings<D>,
        total: &mut D::Floats,
        gradients: &mut D::Floats,
        handover: Option<&mut dyn Handover<D>>,
    ) -> Result<(), Error> {
        let Self { activations, tokens, targets, clock, losses, sequences, training, .. } = self;
        let Model { device, decoder, weights } = model;
        let (hidden, d_hidden) = activations.hidden_and_gradient();
        let head = &decoder.head;
        device.loss_backward(head, weights, targets, hidden, losses, d_hidden, gradients);
        device.add_sum(losses, 0..2 * sequences.positions(), total, 0);
        let pass = pass(model, *sequences, *training, clock);
        let recorded = recordings.of(*sequences);
        let known = std::mem::replace(&mut recorded.known, true);
        if let (Some(handover), true) = (handover, known) {
            let (starts, finals, mut done) = (handover.starts(), decoder.finals(), 0);
            recorded.parts.resize_with(starts.len(), D::Recording::default);
            for (start, recording) in starts.into_iter().zip(&mut recorded.parts) {
                let needed = finals.partition_point(|place| *place > start);
                if needed > done {
                    device.replay(recording, &mut || {
                        activations.backward(&pass, *sequences, tokens, done..needed, gradients);
                    });
                    done = needed;
                }
                handover.take(device, gradients)?;
            }
            return Ok(());
        }
        device.replay(&mut recorded.backward, &mut || {
            activations.backward(&pass, *sequences, tokens, 0..decoder.stages(), gradients);
        });
        Ok(())
    }
}

fn pass<'a, D: Device>(
    model: &'a Model<D>,
    sequences: Sequences,
    training: bool,
    clock: &'a D::Clock,
) -> Pass<'a, D> {
    let dropout = if training { model.decoder.shape.model.dropout as f32 } else { 0.0 };
    Pass { model, rows: sequences.positions(), dropout, clock }
}
