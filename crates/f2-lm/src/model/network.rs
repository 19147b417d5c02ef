use std::collections::HashMap;

use f2_engine::{Device, Labels, Moment, Penalties, Sequences, Weighting};

use super::{Activations, Decoder, Head, Pass};
use crate::Error;

/// A decoder on a device, with room for what a batch leaves behind on its way through it and
/// back. Everything is allocated when it is built; passes allocate nothing.
pub struct Network<D: Device> {
    /// Does the work.
    pub device: D,
    /// What the numbers mean.
    pub decoder: Decoder,
    /// The parameters.
    pub weights: D::Weights,
    /// The gradient so far, in the layout of the parameters.
    pub gradients: D::Floats,
    activations: Activations<D>,
    tokens: D::Tokens,
    pub(super) targets: D::Targets,
    pub(super) predictions: D::Indices,
    clock: D::Clock,
    /// `[2, positions]`: the two parts of every position's loss.
    losses: D::Floats,
    /// One number: the loss so far.
    total: D::Floats,
    /// The batch the activations belong to, and whether dropout acted on it.
    sequences: Sequences,
    training: bool,
}

/// A batch on its way into the network.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// How many sequences, and how long.
    pub sequences: Sequences,
    /// Their tokens, row by row.
    pub inputs: &'a [u32],
    /// When dropout is drawn; none keeps everything.
    pub dropout: Option<Moment>,
}

/// The operations of the passes of batches, all with dropout or all without, recorded by devices
/// that can. A recording replays the sizes it was made with, so every shape has its own.
pub struct Recordings<D: Device> {
    /// By the number and length of the sequences.
    by_shape: HashMap<[usize; 2], Recorded<D>>,
}

/// The passes of batches of one shape.
struct Recorded<D: Device> {
    forward: D::Recording,
    backward: D::Recording,
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
        })
    }
}

impl<D: Device> Network<D> {
    /// Allocates room for batches of up to `positions` positions, and draws starting values.
    pub fn new(device: D, decoder: Decoder, positions: usize, seed: u64) -> Result<Self, Error> {
        let parameters = decoder.layout.len();
        let mut weights = device.weights(parameters)?;
        decoder.initialise(&device, seed, &mut weights);
        let classes = decoder.head.class_ends().len().max(1);
        let shape = &decoder.shape;
        Ok(Self {
            gradients: device.floats(parameters)?,
            activations: Activations::new(&device, &decoder, positions)?,
            tokens: device.tokens(positions)?,
            targets: device.targets(positions, shape.model.width, shape.vocabulary, classes)?,
            predictions: device.indices(positions)?,
            clock: device.clock()?,
            losses: device.floats(2 * positions)?,
            total: device.floats(1)?,
            sequences: Sequences { count: 0, length: 0 },
            training: false,
            weights,
            decoder,
            device,
        })
    }

    /// Computes the hidden states of a batch.
    pub fn forward(&mut self, batch: Batch<'_>, recordings: &mut Recordings<D>) {
        let Self { device, decoder, weights, tokens, clock, activations, .. } = self;
        if let Some(moment) = batch.dropout {
            device.set_clock(moment, clock);
        }
        device.load_tokens(batch.inputs, tokens);
        (self.sequences, self.training) = (batch.sequences, batch.dropout.is_some());
        let (sequences, training) = (self.sequences, self.training);
        let pass = Pass { device, sequences, weights, tokens, clock, training };
        device.replay(&mut recordings.of(sequences).forward, &mut || {
            decoder.forward(&pass, activations);
        });
    }

    /// Says what the batch should have predicted, and how much each position counts. `ids` are
    /// next tokens or [`f2_engine::IGNORED`].
    pub fn set_targets(
        &mut self,
        ids: &[u32],
        weights: Weighting<'_>,
        penalties: Option<Penalties<'_>>,
    ) {
        let class_ends = self.decoder.head.class_ends();
        let labels = Labels { ids, weights, class_ends, penalties };
        self.device.load_targets(&labels, &mut self.targets);
    }

    /// Changes how much each position counts, once the [`predictions`](Self::predictions) of the
    /// batch are known.
    pub fn reweigh_targets(&mut self, weights: &[f32]) {
        self.device.reweigh_targets(weights, &mut self.targets);
    }

    /// The most likely token of every position that has a target, into `predictions`.
    ///
    /// # Panics
    /// With a head of classes, whose most likely token is a matter of decoding.
    pub fn predictions(&mut self, predictions: &mut [u32]) -> Result<(), Error> {
        let Head::Plain(head) = self.decoder.head else { panic!("only a plain head predicts") };
        let hidden = self.activations.hidden();
        let (weights, targets) = (&self.weights, &mut self.targets);
        self.device.softmax_predictions(head, weights, targets, hidden, &mut self.predictions);
        Ok(self.device.read_indices(&self.predictions, predictions)?)
    }

    /// Adds the loss of the batch's targets to [`loss`](Self::loss) and its gradient to
    /// [`gradients`](Self::gradients).
    pub fn backward(&mut self, recordings: &mut Recordings<D>) {
        let Self { device, decoder, weights, tokens, clock, activations, gradients, .. } = self;
        let (hidden, d_hidden) = activations.hidden_and_gradient();
        let (targets, losses) = (&mut self.targets, &mut self.losses);
        match &decoder.head {
            Head::Plain(head) => {
                let head = *head;
                device.softmax_loss_backward(
                    head, weights, targets, hidden, losses, d_hidden, gradients,
                );
            }
            Head::F2(head) => {
                device
                    .f2_loss_backward(head, weights, targets, hidden, losses, d_hidden, gradients);
            }
        }
        let (sequences, training) = (self.sequences, self.training);
        device.add_sum(losses, 0..2 * sequences.positions(), &mut self.total, 0);
        let pass = Pass { device, sequences, weights, tokens, clock, training };
        device.replay(&mut recordings.of(sequences).backward, &mut || {
            decoder.backward(&pass, activations, gradients);
        });
    }

    /// Adds the negative log-likelihood of the batch's targets to [`loss`](Self::loss).
    pub fn add_likelihood(&mut self) {
        let Self { device, decoder, weights, targets, losses, .. } = self;
        decoder.head.likelihood(device, weights, targets, self.activations.hidden(), losses);
        device.add_sum(losses, 0..2 * self.sequences.positions(), &mut self.total, 0);
    }

    /// Starts the sum of losses anew.
    pub fn clear_loss(&mut self) {
        self.device.zero_floats(&mut self.total);
    }

    /// Begins to read what [`loss`](Self::loss) gives.
    pub fn begin_reading_loss(&self, to: &mut D::Reading) {
        self.device.begin_reading(&self.total, to);
    }

    /// The losses since [`clear_loss`](Self::clear_loss), in nats.
    pub fn loss(&self) -> Result<f32, Error> {
        let mut loss = [0.0];
        self.device.read_floats(&self.total, 0, &mut loss)?;
        Ok(loss[0])
    }
}
