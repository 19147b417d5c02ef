//! One training step, and one evaluation: forward, backward, clipping and Adam.

use std::ops::Range;

use f2_engine::{AdamW, Decay, Device, Moments};

use crate::Error;
use crate::batch::{TokenSource, TrainingBatches};
use crate::config::{DecayForm, OptimiserConfig, TrainConfig};
use crate::model::{Decoder, Model, Network, Recordings};
use crate::objective::{Objective, Step, StepBatch, StepBuffers, objective};
use crate::perplexity::{Likelihood, ScoredWindows, Scorer};

/// A model with its optimiser and buffers, on one device.
pub struct Trainer<D: Device> {
    /// The model, and the gradient of the step in progress.
    pub network: Network<D>,
    /// The loss.
    pub objective: Box<dyn Objective<D>>,
    /// Adam's running means.
    pub moments: Moments<D>,
    decayed: Vec<Range<usize>>,
    /// One number: the global norm of the gradient.
    norm: D::Floats,
    /// Loss and norm of the last step, being copied to the host.
    outcome: [D::Reading; 2],
    begun: Option<Begun>,
    buffers: StepBuffers,
    training: Recordings<D>,
    scorer: Scorer<D>,
    /// Windows of a micro-batch, and of a step.
    micro: usize,
    batch_size: usize,
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
    /// The global norm of the gradient before clipping. Where it is not finite the step changed
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
        let positions = config.batch.micro_size() * config.batch.sequence;
        let parameters = decoder.layout.len();
        let network = Network::new(device, decoder, positions, config.seed)?;
        let device = &network.model.device;
        Ok(Self {
            moments: Moments {
                first: device.floats(parameters)?,
                second: device.floats(parameters)?,
            },
            decayed: network.model.decoder.layout.decayed(),
            norm: device.floats(1)?,
            outcome: [device.reading()?, device.reading()?],
            begun: None,
            objective: objective(config, &network)?,
            buffers: StepBuffers::default(),
            training: Recordings::default(),
            scorer: Scorer::default(),
            micro: config.batch.micro_size(),
            batch_size: config.batch.size,
            seed: config.seed,
            network,
        })
    }

    /// Makes one step: the gradient of the whole batch, clipped and handed to Adam. `step` is the
    /// number of steps before it.
    ///
    /// With `ahead` another step follows with nothing between them. Its gradient is then enqueued
    /// before this step's outcome is read, so that the device never waits for the host.
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
        self.update(update);
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
        self.forget_begun();
        let Self { network, buffers, training, micro, .. } = self;
        let (seed, size, micro) = (self.seed, self.batch_size, *micro);
        let batch = StepBatch { batches, text, number: step, seed, size, micro };
        network.clear_loss();
        let mut step = Step::new(network, batch, buffers, training);
        self.objective.accumulate(&mut step)?;
        Ok(step.operations())
    }

    /// Discards a step that was computed ahead.
    fn forget_begun(&mut self) {
        if self.begun.take().is_some() {
            let Network { model, gradients, .. } = &mut self.network;
            model.device.zero_floats(gradients);
        }
    }

    /// Applies Adam, sets the gradients to zero and starts to read the outcome.
    fn update(&mut self, update: AdamW) {
        let [loss, norm] = &mut self.outcome;
        self.network.begin_reading_loss(loss);
        let Network { model, gradients, .. } = &mut self.network;
        let Model { device, weights, .. } = model;
        device.global_norm(gradients, &mut self.norm);
        device.adamw(update, &self.decayed, &self.norm, weights, &mut self.moments, gradients);
        device.begin_reading(&self.norm, norm);
    }

    /// The likelihood of a split, without dropout. `None` if stopped.
    pub fn evaluate(
        &mut self,
        windows: &ScoredWindows,
        text: &dyn TokenSource,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Likelihood>, Error> {
        self.forget_begun();
        let Network { model, workspace, .. } = &mut self.network;
        self.scorer.score(model, workspace, text, windows, &mut |_| {}, stop)
    }
}

impl OptimiserConfig {
    /// The settings of update number `update` (from 1) at `fraction` of the top learning rate.
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
