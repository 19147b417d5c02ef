use std::ops::Range;

use f2_engine::{AdamW, Decay, Device, IGNORED, Moment, Moments, Sequences};

use crate::Error;
use crate::batch::{EvaluationWindows, TokenSource, TrainingWindows};
use crate::config::{DecayForm, OptimiserConfig, TrainConfig};
use crate::model::{Activations, Decoder, Pass, Work};
use crate::objective::{LossGradients, LossPass, Objective, likelihood, objective};

/// A model with all that training it needs, on one device. Everything is allocated when it is
/// built; a step allocates nothing.
pub struct Trainer<D: Device> {
    /// Does the work.
    pub device: D,
    /// What the numbers mean.
    pub decoder: Decoder,
    /// The parameters.
    pub weights: D::Weights,
    /// Adam's running means.
    pub moments: Moments<D>,
    /// What is minimised.
    pub objective: Box<dyn Objective<D>>,
    /// The gradient of the step in progress, in the layout of the parameters.
    pub gradients: D::Floats,
    decayed: Vec<Range<usize>>,
    activations: Activations<D>,
    tokens: D::Tokens,
    targets: D::Targets,
    clock: D::Clock,
    /// `[2, positions]`: the two parts of every position's loss.
    losses: D::Floats,
    /// One number: the loss of the step so far.
    total: D::Floats,
    /// One number: the global norm of the gradient.
    norm: D::Floats,
    forward: D::Recording,
    backward: D::Recording,
    evaluation: D::Recording,
    micro: Sequences,
    batch_size: usize,
    seed: u64,
    inputs: Vec<u32>,
    ids: Vec<u32>,
}

/// What came of a step.
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
    /// Allocates everything and draws the starting values.
    pub fn new(device: D, decoder: Decoder, config: &TrainConfig) -> Result<Self, Error> {
        let micro = Sequences { count: config.batch.micro_size(), length: config.batch.sequence };
        let positions = micro.positions();
        let layout = &decoder.layout;
        let mut weights = device.weights(layout.len())?;
        decoder.initialise(&device, config.seed, &mut weights);
        let classes = decoder.head.class_ends().len().max(1);
        let shape = &decoder.shape;
        Ok(Self {
            moments: Moments {
                first: device.floats(layout.len())?,
                second: device.floats(layout.len())?,
            },
            gradients: device.floats(layout.len())?,
            decayed: layout.decayed(),
            activations: Activations::new(&device, &decoder, positions)?,
            tokens: device.tokens(positions)?,
            targets: device.targets(positions, shape.model.width, shape.vocabulary, classes)?,
            clock: device.clock()?,
            losses: device.floats(2 * positions)?,
            total: device.floats(1)?,
            norm: device.floats(1)?,
            forward: D::Recording::default(),
            backward: D::Recording::default(),
            evaluation: D::Recording::default(),
            objective: objective(config.objective.name),
            micro,
            batch_size: config.batch.size,
            seed: config.seed,
            inputs: vec![0; positions],
            ids: vec![0; positions],
            weights,
            decoder,
            device,
        })
    }

    /// Makes one step: the gradient of the whole batch, clipped and handed to Adam. `step` is the
    /// number of steps before it.
    pub fn step(
        &mut self,
        windows: &TrainingWindows,
        text: &dyn TokenSource,
        step: u64,
        update: AdamW,
    ) -> Result<StepReport, Error> {
        let operations = self.accumulate(windows, text, step)?;
        self.update(update);
        let (mut loss, mut norm) = ([0.0], [0.0]);
        self.device.read_floats(&self.total, 0, &mut loss)?;
        self.device.read_floats(&self.norm, 0, &mut norm)?;
        Ok(StepReport { loss: loss[0], gradient_norm: norm[0], operations })
    }

    /// Adds the gradient of a step's batch to [`gradients`](Self::gradients), micro-batch by
    /// micro-batch. Returns the floating-point operations it needed.
    pub fn accumulate(
        &mut self,
        windows: &TrainingWindows,
        text: &dyn TokenSource,
        step: u64,
    ) -> Result<f64, Error> {
        let work = Work::new(&self.decoder, self.micro.length);
        let mut operations = 0.0;
        self.device.zero_floats(&mut self.total);
        for first in (0..self.batch_size).step_by(self.micro.count) {
            let rows = first as u64..(first + self.micro.count) as u64;
            windows.fill(text, step, rows, &mut self.inputs, &mut self.ids);
            self.check_tokens()?;
            operations += work.of_step(&self.decoder.head, &self.ids);
            self.accumulate_micro_batch(step, first);
        }
        Ok(operations)
    }

    /// Refuses tokens the embedding has no row for: a text may lie about its vocabulary.
    fn check_tokens(&self) -> Result<(), Error> {
        let vocabulary = self.decoder.shape.vocabulary;
        let outside = |token: &&u32| **token as usize >= vocabulary && **token != IGNORED;
        match self.inputs.iter().chain(&self.ids).find(outside) {
            Some(&token) => Err(Error::TokenOutside { token, vocabulary }),
            None => Ok(()),
        }
    }

    /// Hands the gradients to Adam and sets them back to zero.
    fn update(&mut self, update: AdamW) {
        self.device.global_norm(&self.gradients, &mut self.norm);
        self.device.adamw(
            update,
            &self.decayed,
            &self.norm,
            &mut self.weights,
            &mut self.moments,
            &mut self.gradients,
        );
    }

    /// Adds the gradient of one micro-batch, the windows in `inputs` and `ids`, whose first row
    /// is `first_row` of the step's batch.
    fn accumulate_micro_batch(&mut self, step: u64, first_row: usize) {
        let Self { device, decoder, weights, tokens, clock, activations, gradients, .. } = self;
        let first_position = (first_row * self.micro.length) as u64;
        device.set_clock(Moment { seed: self.seed, step: step as u32, first_position }, clock);
        device.load_tokens(&self.inputs, tokens);
        let micro = self.micro;
        let pass = Pass { device, sequences: micro, weights, tokens, clock, training: true };
        device.replay(&mut self.forward, &mut || decoder.forward(&pass, activations));
        let (hidden, d_hidden) = activations.hidden_and_gradient();
        let loss_pass = LossPass {
            device,
            head: &decoder.head,
            weights,
            hidden,
            ids: &self.ids,
            sequence: micro.length,
            weight: 1.0 / (self.batch_size * micro.length) as f32,
            targets: &mut self.targets,
            losses: &mut self.losses,
        };
        self.objective.loss_backward(loss_pass, LossGradients { d_hidden, parameters: gradients });
        device.add_sum(&self.losses, 0..2 * micro.positions(), &mut self.total, 0);
        device.replay(&mut self.backward, &mut || decoder.backward(&pass, activations, gradients));
    }

    /// The mean negative log-likelihood of a split, in nats, without dropout. Stops early, with
    /// nothing, when `stop` says so.
    pub fn evaluate(
        &mut self,
        windows: &EvaluationWindows,
        text: &dyn TokenSource,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<f64>, Error> {
        let mut sum = 0.0;
        for first in (0..windows.count()).step_by(self.micro.count) {
            if stop() {
                return Ok(None);
            }
            let rows = self.inputs.chunks_exact_mut(self.micro.length);
            let rows = rows.zip(self.ids.chunks_exact_mut(self.micro.length));
            for (window, (inputs, ids)) in (first..).zip(rows) {
                windows.fill(text, window, IGNORED, inputs, ids);
            }
            self.check_tokens()?;
            sum += f64::from(self.likelihood()?);
        }
        Ok(Some(sum / windows.scored() as f64))
    }

    /// The summed negative log-likelihood of the windows in `inputs` and `ids`.
    fn likelihood(&mut self) -> Result<f32, Error> {
        let Self { device, decoder, weights, tokens, clock, activations, .. } = self;
        let micro = self.micro;
        device.load_tokens(&self.inputs, tokens);
        let pass = Pass { device, sequences: micro, weights, tokens, clock, training: false };
        device.replay(&mut self.evaluation, &mut || decoder.forward(&pass, activations));
        likelihood(LossPass {
            device,
            head: &decoder.head,
            weights,
            hidden: activations.hidden(),
            ids: &self.ids,
            sequence: micro.length,
            weight: 1.0,
            targets: &mut self.targets,
            losses: &mut self.losses,
        });
        device.zero_floats(&mut self.total);
        device.add_sum(&self.losses, 0..2 * micro.positions(), &mut self.total, 0);
        let mut sum = [0.0];
        device.read_floats(&self.total, 0, &mut sum)?;
        Ok(sum[0])
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
