//! Times a few training steps of a plan's own models, so that an estimate is of this machine as it
//! is now.

use f2_engine::Device;
use f2_lm::bench::{measure, zipf_class_ends};
use f2_lm::config::{ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::memory::available_memory;
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::train::RunCost;

use super::{configuration, sizes};
use crate::{Corpora, Error, Plan};

/// Steps that are timed, after those that warm up.
const STEPS: usize = 3;
/// Seconds that one of them may take at a third of the device's peak.
const STEP_SECONDS: f64 = 0.5;
/// Classes assumed, as there are none yet.
const CLASSES: usize = 15;

/// A model whose steps are to be timed on some device.
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
        // Every step a sequence step: the others are those of token-level unlikelihood.
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

    /// Operations of a plain step with full batches, as estimates count them.
    pub(super) fn plain_operations(&self) -> f64 {
        let parameters = sizes::parameters(&self.config, self.vocabulary);
        sizes::operations(parameters, &self.config)
    }

    /// Seconds of a step with full batches, from steps that are made small enough to be timed
    /// quickly. `None` where the device's memory does not hold even those.
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
            // A sequence step writes as many texts whatever the batch.
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
        // Output vectors a target is compared with: those of its class, and the classes.
        let classes = self.classes() as f64;
        let outputs =
            if f2 { self.vocabulary as f64 / classes + classes } else { self.vocabulary as f64 };
        RunCost::new::<D>(&decoder, config, outputs)
    }
}

/// Bytes of the device's memory that the largest training of a plan needs, and how many could be
/// had now.
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
