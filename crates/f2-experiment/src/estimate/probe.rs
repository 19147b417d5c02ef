//! Times a few training steps of a plan's models, so that estimates reflect this machine and its
//! current load.

use f2_engine::Device;
use f2_lm::bench::{measure, zipf_class_ends};
use f2_lm::config::{ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::memory::available_memory;
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::train::RunCost;

use super::{configuration, sizes};
use crate::{Corpora, Error, Plan};

/// Timed steps, after the warm-up.
const STEPS: usize = 3;
/// The limit in seconds for a step at a third of the device's peak.
const STEP_SECONDS: f64 = 0.5;
/// The assumed number of classes, as there are none yet.
const CLASSES: usize = 15;

/// A model whose training steps are to be timed.
#[derive(Clone, Debug)]
pub struct StepProbe {
    model: ObjectiveName,
    /// The share of the model's steps that are timed.
    share: f64,
    config: TrainConfig,
    vocabulary: usize,
}

impl StepProbe {
    /// The probe of a model of a plan.
    pub fn new(plan: &Plan, corpora: &Corpora, model: ObjectiveName) -> Result<Self, Error> {
        let mut config = configuration(plan)?;
        config.objective.name = model;
        // Time sequence steps only: the others are those of token-level unlikelihood.
        let rate = std::mem::replace(&mut config.unlikelihood.sequence_rate, 1.0);
        let share = if model == ObjectiveName::UnlikelihoodSequence { rate } else { 1.0 };
        // The random text of the probe has no documents.
        config.batch.order = WindowOrder::Shuffled;
        let vocabulary = sizes::vocabulary(plan, &corpora.main)?;
        Ok(Self { model, share, config, vocabulary })
    }

    pub(super) fn model(&self) -> ObjectiveName {
        self.model
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Floating-point operations of a step of the plain model with full batches.
    pub(super) fn plain_operations(&self) -> f64 {
        let parameters = sizes::parameters(&self.config, self.vocabulary);
        sizes::operations(parameters, &self.config)
    }

    /// Seconds of a step with full batches, extrapolated from steps that are small enough to be
    /// timed quickly. `None` if even those do not fit in the device's memory.
    pub fn seconds<D: Device>(&self, device: D) -> Result<Option<f64>, Error> {
        let peak = device.measured_peak();
        let memory = available_memory(&device).map_or(u64::MAX, |bytes| bytes / 2);
        let fits = |config: &TrainConfig| {
            let cost = self.cost::<D>(config);
            cost.operations_per_step < STEP_SECONDS * peak / 3.0 && cost.bytes() < memory
        };
        let mut small = self.config.clone();
        while !fits(&small) && small.batch.size > 1 {
            small.batch.size = small.batch.size.div_ceil(2);
            small.batch.micro = 0;
        }
        while !fits(&small) && small.model.layers > 1 {
            small.model.layers = small.model.layers.div_ceil(2);
        }
        if self.cost::<D>(&small).bytes() >= memory {
            return Ok(None);
        }
        let mut whole = self.config.clone();
        if whole.objective.name == ObjectiveName::UnlikelihoodSequence {
            // A sequence step generates the same number of texts for any batch size.
            whole.batch = small.batch.clone();
        }
        let factor =
            self.cost::<D>(&whole).operations_per_step / self.cost::<D>(&small).operations_per_step;
        let measured = measure(device, &small, self.vocabulary, self.classes(), STEPS)?;
        Ok(Some(factor * measured.seconds_per_step))
    }

    fn classes(&self) -> usize {
        CLASSES.min(self.vocabulary)
    }

    fn cost<D: Device>(&self, config: &TrainConfig) -> RunCost {
        let f2 = config.objective.name.needs_classes();
        let class_ends =
            if f2 { zipf_class_ends(self.vocabulary, self.classes()) } else { Vec::new() };
        let decoder = Decoder::new(ModelShape {
            model: config.model.clone(),
            positions: config.batch.sequence,
            vocabulary: self.vocabulary,
            class_ends,
        });
        // Output vectors per target: those of its class, and the class vectors.
        let classes = self.classes() as f64;
        let outputs =
            if f2 { self.vocabulary as f64 / classes + classes } else { self.vocabulary as f64 };
        RunCost::new::<D>(&decoder, config, outputs)
    }
}

/// The device memory in bytes that the largest training of a plan needs, and how much is available.
pub fn training_bytes<D: Device>(
    device: &D,
    plan: &Plan,
    corpora: &Corpora,
) -> Result<(u64, Option<u64>), Error> {
    let mut most = 0;
    for model in &plan.models {
        let probe = StepProbe::new(plan, corpora, *model)?;
        most = most.max(probe.cost::<D>(&probe.config).bytes());
    }
    Ok((most, available_memory(device)))
}
