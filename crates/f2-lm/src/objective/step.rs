//! One training step, as objectives use it.

use f2_engine::{Device, IGNORED, Moment, Penalties, Sequences, Weighting};

use crate::Error;
use crate::batch::{TokenSource, TrainingBatches};
use crate::model::{Batch, Handover, Network, Recordings, Work};

/// One training step, as objectives use it: a batch of text, read one micro-batch at a time,
/// and the network it goes through.
pub struct Step<'a, D: Device> {
    /// The model, and the loss and gradient of the step so far.
    pub network: &'a mut Network<D>,
    batch: StepBatch<'a>,
    /// The current shard; 0 if there is only one.
    shard: usize,
    /// The shape of every micro-batch.
    micro: Sequences,
    buffers: &'a mut StepBuffers,
    recordings: &'a mut Recordings<D>,
    /// The micro-batch in the buffers.
    read: Option<usize>,
    /// Whether the network holds its hidden states, and whether predictions were made from them.
    holds: bool,
    predicted: bool,
    /// Takes the gradient as the last backward pass finishes it; `None` if it is not sent to
    /// others.
    handover: Option<&'a mut dyn Handover<D>>,
    /// Backward passes so far; counted for the shard with the handover.
    passes: usize,
}

/// The text of a step.
#[derive(Clone, Copy)]
pub struct StepBatch<'a> {
    /// Cuts the text.
    pub batches: &'a TrainingBatches,
    /// The text.
    pub text: &'a dyn TokenSource,
    /// How many steps came before.
    pub number: u64,
    /// The run's seed.
    pub seed: u64,
    /// How many windows there are, in all micro-batches of a shard together.
    pub size: usize,
    /// How many windows a micro-batch has.
    pub micro: usize,
}

/// The host's copy of a micro-batch.
#[derive(Clone, Debug, Default)]
pub struct StepBuffers {
    inputs: Vec<u32>,
    ids: Vec<u32>,
    predictions: Vec<u32>,
    /// Floating-point operations of the step so far.
    operations: f64,
}

impl StepBuffers {
    /// Resizes to the shape of a micro-batch.
    fn resize(&mut self, micro: Sequences) {
        for buffer in [&mut self.inputs, &mut self.ids, &mut self.predictions] {
            buffer.resize(micro.positions(), 0);
        }
    }

    /// Refuses tokens that the embedding has no row for: a corpus may claim a smaller vocabulary.
    fn check(&self, vocabulary: usize) -> Result<(), Error> {
        let outside = |token: &&u32| **token as usize >= vocabulary && **token != IGNORED;
        match self.inputs.iter().chain(&self.ids).find(outside) {
            Some(&token) => Err(Error::TokenOutside { token, vocabulary }),
            None => Ok(()),
        }
    }
}

impl<'a, D: Device> Step<'a, D> {
    /// A step before its first pass.
    pub fn new(
        network: &'a mut Network<D>,
        batch: StepBatch<'a>,
        buffers: &'a mut StepBuffers,
        recordings: &'a mut Recordings<D>,
    ) -> Self {
        let micro = Sequences { count: batch.micro, length: batch.batches.length(batch.number) };
        buffers.resize(micro);
        buffers.operations = 0.0;
        Self {
            network,
            batch,
            shard: 0,
            micro,
            buffers,
            recordings,
            read: None,
            holds: false,
            predicted: false,
            handover: None,
            passes: 0,
        }
    }

    /// The same step, for its last shard: parts of the gradient are handed over as soon as the last
    /// backward pass has finished them.
    pub fn handing_over<'b>(&'b mut self, handover: &'b mut dyn Handover<D>) -> Step<'b, D> {
        Step {
            network: self.network,
            batch: self.batch,
            shard: self.shard,
            micro: self.micro,
            buffers: self.buffers,
            recordings: self.recordings,
            read: self.read,
            holds: self.holds,
            predicted: self.predicted,
            handover: Some(handover),
            passes: 0,
        }
    }

    /// Moves to a shard of the batch.
    pub fn enter(&mut self, shard: usize) {
        if self.shard != shard {
            self.shard = shard;
            (self.read, self.holds) = (None, false);
        }
    }

    /// Whether the step is in its first shard.
    pub fn is_in_first(&self) -> bool {
        self.shard == 0
    }

    /// How many micro-batches a shard has.
    pub fn micro_batches(&self) -> usize {
        self.batch.size / self.batch.micro
    }

    /// How many steps came before, and the run's seed: all that random draws may depend on.
    pub fn moment(&self) -> Moment {
        Moment { seed: self.batch.seed, step: self.batch.number as u32, first_position: 0 }
    }

    /// Reads a micro-batch's text.
    pub fn read(&mut self, index: usize) -> Result<(), Error> {
        if self.read == Some(index) {
            return Ok(());
        }
        let first = self.first_row(index);
        self.read_rows(first)?;
        self.read = Some(index);
        Ok(())
    }

    /// Reads the text of the first micro-batch of the first shard.
    pub fn read_first(&mut self) -> Result<(), Error> {
        if self.is_in_first() { self.read(0) } else { self.read_rows(0) }
    }

    /// The number of a micro-batch's first row in the whole batch.
    fn first_row(&self, index: usize) -> usize {
        self.shard * self.batch.size + index * self.batch.micro
    }

    fn read_rows(&mut self, first: usize) -> Result<(), Error> {
        (self.read, self.holds) = (None, false);
        let StepBatch { batches, text, number, micro, .. } = self.batch;
        let rows = first as u64..(first + micro) as u64;
        let StepBuffers { inputs, ids, .. } = &mut *self.buffers;
        batches.fill(text, number, rows, inputs, ids);
        self.buffers.check(self.network.model.decoder.shape.vocabulary)
    }

    /// The input tokens of the micro-batch read last, row by row.
    pub fn inputs(&self) -> &[u32] {
        &self.buffers.inputs
    }

    /// The next token of each of its positions, or [`IGNORED`].
    pub fn ids(&self) -> &[u32] {
        &self.buffers.ids
    }

    /// Tokens in a row, with its padding.
    pub fn sequence(&self) -> usize {
        self.micro.length
    }

    /// Runs the forward pass of a micro-batch, with dropout. If it is the current one, its hidden
    /// states are reused.
    pub fn forward(&mut self, index: usize) -> Result<(), Error> {
        self.read(index)?;
        if self.holds {
            return Ok(());
        }
        let first_position = (self.first_row(index) * self.micro.length) as u64;
        let batch = Batch {
            sequences: self.micro,
            inputs: &self.buffers.inputs,
            dropout: Some(Moment { first_position, ..self.moment() }),
        };
        self.network.forward(batch, self.recordings);
        (self.holds, self.predicted) = (true, false);
        Ok(())
    }

    /// The most likely next token at every position of the current micro-batch; [`IGNORED`] where
    /// there is no target.
    pub fn predictions(&mut self) -> Result<&[u32], Error> {
        if !self.predicted {
            self.network.set_targets(&self.buffers.ids, self.mean(), None);
            self.network.predictions(&mut self.buffers.predictions)?;
            self.predicted = true;
        }
        Ok(&self.buffers.predictions)
    }

    /// The same weight for every target of the step, for the mean of their losses.
    pub fn mean(&self) -> Weighting<'static> {
        Weighting::Uniform(self.share())
    }

    /// One over the number of targets of the step.
    pub fn share(&self) -> f32 {
        1.0 / self.batch.batches.targets(self.batch.number) as f32
    }

    /// Adds loss and gradient of the current micro-batch.
    pub fn backward(
        &mut self,
        weights: Weighting<'_>,
        penalties: Option<Penalties<'_>>,
    ) -> Result<(), Error> {
        match (weights, penalties) {
            (Weighting::Each(weights), None) if self.predicted => {
                self.network.reweigh_targets(weights);
            }
            _ => self.network.set_targets(&self.buffers.ids, weights, penalties),
        }
        self.passes += 1;
        let last = self.passes == self.micro_batches();
        let handover: Option<&mut dyn Handover<D>> = match &mut self.handover {
            Some(handover) if last => Some(&mut **handover),
            _ => None,
        };
        self.network.backward(self.recordings, handover)?;
        (self.holds, self.predicted) = (false, false);
        let decoder = &self.network.model.decoder;
        let work = Work::new(decoder, self.micro.length);
        self.count(work.of_step(&decoder.head, &self.buffers.ids));
        Ok(())
    }

    /// Adds to the floating-point operations the step needed.
    pub fn count(&mut self, operations: f64) {
        self.buffers.operations += operations;
    }

    /// The floating-point operations the step needed.
    pub fn operations(&self) -> f64 {
        self.buffers.operations
    }
}
