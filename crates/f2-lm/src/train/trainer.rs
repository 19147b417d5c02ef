//! One training step, and one evaluation: forward, backward, clipping and Adam.

use std::ops::Range;

use f2_engine::{AdamW, Decay, Device, Moments};

use crate::Error;
use crate::batch::{TokenSource, TrainingBatches};
use crate::config::{DecayForm, OptimiserConfig, TrainConfig};
use crate::model::{Decoder, Model, Network, Recordings};
use crate::objective::{Objective, Step, StepBatch, StepBuffers, objective};
use crate::perplexity::{Likelihood, ScoredWindows, Scorer};

use super::parallel::{Ranks, Sharded, Shards};

/// A model with its optimiser and buffers, on one device.
pub struct Trainer<D: Device> {
    /// The other ranks; `None` without any. The first field, so that it is dropped first: freeing a
    /// buffer waits for the device, and the device for ranks that may be gone.
    pub(super) ranks: Option<Ranks<D>>,
    /// The model, and the gradient of the step in progress.
    pub network: Network<D>,
    /// The loss.
    pub objective: Box<dyn Objective<D>>,
    /// Adam's running means, of the slice that this rank owns.
    pub moments: Moments<D>,
    /// The buffers of a step in shards; `None` with a single shard.
    sharded: Option<Sharded<D>>,
    decayed: Vec<Range<usize>>,
    /// One number: the global norm of the gradient.
    norm: D::Floats,
    /// Loss and norm of the last step, being copied to the host.
    outcome: [D::Reading; 2],
    begun: Option<Begun>,
    buffers: StepBuffers,
    training: Recordings<D>,
    scorer: Scorer<D>,
    /// Windows of a micro-batch, and of a shard.
    micro: usize,
    shard_size: usize,
    seed: u64,
}

/// A step whose gradient the device is working on, and the floating-point operations it needs.
#[derive(Clone, Copy)]
struct Begun {
    step: u64,
    operations: f64,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Mean loss over the step's targets, in nats.
    pub loss: f32,
    /// The global norm of the gradient before clipping. If it is not finite, the step changed
    /// nothing.
    pub gradient_norm: f32,
    /// Floating-point operations the step needed.
    pub operations: f64,
}

impl StepReport {
    /// Whether the step changed the parameters.
    pub fn is_finite(&self) -> bool {
        self.loss.is_finite() && self.gradient_norm.is_finite()
    }
}

impl<D: Device> Trainer<D> {
    /// Allocates all buffers and draws initial values.
    pub fn new(device: D, decoder: Decoder, config: &TrainConfig) -> Result<Self, Error> {
        Self::among(&mut None, device, decoder, config)
    }

    /// Like [`new`](Self::new), as one of several ranks with the same settings. On success the
    /// connection is taken out of `ranks`.
    pub fn among(
        ranks: &mut Option<Ranks<D>>,
        device: D,
        decoder: Decoder,
        config: &TrainConfig,
    ) -> Result<Self, Error> {
        let positions = config.batch.micro_size() * config.batch.sequence;
        let parameters = decoder.layout.len();
        let recomputes = config.batch.recompute;
        let network = Network::recomputing(device, decoder, positions, config.seed, recomputes)?;
        let device = &network.model.device;
        let [rank, size] = ranks.as_ref().map_or([0, 1], Ranks::place);
        let shards = Shards { count: config.batch.shards.max(1), ranks: size };
        let decoder = &network.model.decoder;
        let sharded = (shards.count > 1).then(|| Sharded::new(device, decoder, shards, rank));
        let sharded = sharded.transpose()?;
        let objective = objective(config, &network)?;
        let owned = sharded.as_ref().map_or(parameters, |of| of.partition().owned(rank));
        // All that can fail comes first: while the caller has the connection it can report why.
        let moments = Moments { first: device.floats(owned)?, second: device.floats(owned)? };
        let (norm, outcome) = (device.floats(1)?, [device.reading()?, device.reading()?]);
        Ok(Self {
            moments,
            ranks: ranks.take(),
            sharded,
            decayed: network.model.decoder.layout.decayed(),
            norm,
            outcome,
            begun: None,
            objective,
            buffers: StepBuffers::default(),
            training: Recordings::default(),
            scorer: Scorer::default(),
            micro: config.batch.micro_size(),
            shard_size: config.batch.shard_size(),
            seed: config.seed,
            network,
        })
    }

    /// Makes one step: the gradient of the whole batch, clipped and handed to Adam. `step` is the
    /// number of steps before it.
    ///
    /// With `ahead`, the next step follows directly. Its gradient is then enqueued before this
    /// step's outcome is read, so that the device never waits for the host.
    pub fn step(
        &mut self,
        batches: &TrainingBatches,
        text: &dyn TokenSource,
        step: u64,
        update: AdamW,
        ahead: bool,
    ) -> Result<StepReport, Error> {
        let operations = match self.begun.take() {
            Some(begun) if begun.step == step => begun.operations,
            begun => {
                self.begun = begun;
                self.accumulate(batches, text, step)?
            }
        };
        self.update(update)?;
        if ahead && D::RUNS_BEHIND && self.objective.may_run_ahead() {
            let operations = self.accumulate(batches, text, step + 1)?;
            self.begun = Some(Begun { step: step + 1, operations });
        }
        let [loss, norm] = &self.outcome;
        let read = |reading| self.network.model.device.finish_reading(reading);
        Ok(StepReport { loss: read(loss)?, gradient_norm: read(norm)?, operations })
    }

    /// Adds the gradient of a step's batch to the network's. Returns the floating-point operations
    /// it needed.
    pub fn accumulate(
        &mut self,
        batches: &TrainingBatches,
        text: &dyn TokenSource,
        step: u64,
    ) -> Result<f64, Error> {
        self.forget_begun()?;
        let Self { network, buffers, training, micro, objective, ranks, sharded, .. } = self;
        let (seed, size, micro) = (self.seed, self.shard_size, *micro);
        let batch = StepBatch { batches, text, number: step, seed, size, micro };
        network.clear_loss();
        let mut step = Step::new(network, batch, buffers, training);
        if let Some(sharded) = sharded {
            sharded.accumulate(&mut step, objective.as_mut(), ranks)?;
        } else {
            objective.survey(&mut step)?;
            objective.settle(&mut |_| Ok(()))?;
            objective.accumulate(&mut step)?;
        }
        Ok(step.operations())
    }

    /// Discards a step that was computed ahead.
    fn forget_begun(&mut self) -> Result<(), Error> {
        if self.begun.take().is_some() {
            let Network { model, gradients, .. } = &mut self.network;
            if let Some(ranks) = &mut self.ranks {
                // Messages already sent between ranks must arrive; they are ignored.
                model.device.finish_scatters(&mut ranks.peers)?;
            }
            model.device.zero_floats(gradients);
        }
        Ok(())
    }

    /// Applies Adam, sets the gradients to zero and starts to read the outcome.
    fn update(&mut self, update: AdamW) -> Result<(), Error> {
        let Self { network, sharded, ranks, norm, outcome, .. } = self;
        if let Some(sharded) = sharded {
            sharded.reduce(network, ranks, norm)?;
            network.model.device.begin_reading(&sharded.loss, &mut outcome[0]);
            let (model, moments) = (&mut network.model, &mut self.moments);
            sharded.update(model, ranks, update, &self.decayed, norm, moments)?;
            network.model.device.begin_reading(norm, &mut outcome[1]);
            return Ok(());
        }
        let [loss, norm] = outcome;
        self.network.begin_reading_loss(loss);
        let Network { model, gradients, .. } = &mut self.network;
        let Model { device, weights, .. } = model;
        device.global_norm(gradients, &mut self.norm);
        device.adamw(update, &self.decayed, &self.norm, weights, &mut self.moments, gradients);
        device.begin_reading(&self.norm, norm);
        Ok(())
    }

    /// Tells the other ranks why this one ends.
    pub(super) fn tell(&mut self, error: &Error) {
        if let Some(ranks) = &mut self.ranks {
            ranks.tell(error);
        }
    }

    /// The pieces of the flat buffer whose moments this rank has, each with its offset in them.
    pub(super) fn slice(&self) -> Vec<(usize, Range<usize>)> {
        match &self.sharded {
            Some(sharded) => sharded.partition().slice(sharded.rank()).collect(),
            None => vec![(0, 0..self.network.model.decoder.layout.len())],
        }
    }

    /// Gathers the slices of all ranks at rank 0 for a checkpoint: parameters on its device, Adam's
    /// moments on its host. `None` with a single rank.
    pub(super) fn collect(&mut self) -> Result<Option<[Vec<f32>; 2]>, Error> {
        if self.ranks.is_none() {
            return Ok(None);
        }
        self.forget_begun()?;
        let (Some(ranks), Some(sharded)) = (&mut self.ranks, &self.sharded) else {
            return Ok(None);
        };
        let Network { model, gradients, .. } = &mut self.network;
        let Model { device, weights, decoder } = model;
        let partition = sharded.partition();
        device.gather_full_weights(&mut ranks.peers, partition, weights)?;
        let mut moments = [Vec::new(), Vec::new()];
        // The gradients are zero now, so that their buffer can hold the moments.
        for (from, to) in [&self.moments.first, &self.moments.second].into_iter().zip(&mut moments)
        {
            for (at, piece) in partition.slice(sharded.rank()) {
                device.copy_floats(from, at..at + piece.len(), gradients, piece.start);
            }
            device.gather_floats(&mut ranks.peers, partition, gradients)?;
            if ranks.leads() {
                to.resize(decoder.layout.len(), 0.0);
                device.read_floats(gradients, 0, to)?;
            }
        }
        device.zero_floats(gradients);
        Ok(Some(moments))
    }

    /// The likelihood of a split, without dropout. `None` if stopped.
    pub fn evaluate(
        &mut self,
        windows: &ScoredWindows,
        text: &dyn TokenSource,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Likelihood>, Error> {
        self.forget_begun()?;
        let Network { model, workspace, .. } = &mut self.network;
        if let Some(ranks) = &mut self.ranks {
            let place = ranks.place();
            let mut stopped =
                || ranks.control.broadcast(&[u8::from(stop())]).map(|told| told == [1]);
            let mut asked = || Ok(stopped()?);
            let own =
                self.scorer.score_in_turn(model, workspace, text, windows, place, &mut asked)?;
            let Some(own) = own else { return Ok(None) };
            let nats = ranks.interleave(&own)?.into_iter().sum();
            return Ok(Some(Likelihood { nats, scored: windows.scored() }));
        }
        self.scorer.score(model, workspace, text, windows, &mut |_| {}, stop)
    }
}

impl OptimiserConfig {
    /// The settings of update number `update` (from 1) at `fraction` of the peak learning rate.
    pub fn update(&self, update: u64, fraction: f64) -> AdamW {
        AdamW {
            learning_rate: self.learning_rate * fraction,
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            decay: match self.decay {
                DecayForm::Decoupled => Decay::Decoupled,
                DecayForm::L2 => Decay::Penalty,
            },
            clip: if self.clip == 0.0 { f64::INFINITY } else { self.clip },
            update,
        }
    }
}
