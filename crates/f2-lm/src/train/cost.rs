//! The memory and operations a run needs, computed before anything is allocated.

use f2_engine::{Device, NORM_BLOCK};

use crate::Error;
use crate::batch::TrainingBatches;
use crate::config::{ObjectiveName, TrainConfig};
use crate::memory::{Purpose, check_memory};
use crate::model::{Decoder, Incremental, Work, Workspace};

use super::parallel::{Sharded, Shards, partition};

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunCost {
    /// Parameters to learn.
    pub parameters: usize,
    /// Bytes for parameters, gradients and Adam's moments; of the rank that needs most.
    pub parameter_bytes: u64,
    /// Bytes a rank sends in a step, on average.
    pub sent_bytes: u64,
    /// Bytes for saved activations and their gradients.
    pub activation_bytes: u64,
    /// Bytes for the head's loss: logits of a chunk, targets and workspace.
    pub head_bytes: u64,
    /// Targets predicted by a step, on average.
    pub tokens_per_step: usize,
    /// Floating-point operations of a step whose targets are distributed over the classes according
    /// to the counts.
    pub operations_per_step: f64,
}

impl RunCost {
    /// The cost of training `decoder` on `D`. `mean_outputs` is how many output vectors a
    /// target is compared with on average.
    pub fn new<D: Device>(decoder: &Decoder, config: &TrainConfig, mean_outputs: f64) -> Self {
        Self::among::<D>(decoder, config, mean_outputs, 1)
    }

    /// The cost of training by several ranks: memory and bytes of one, operations of all.
    pub fn among<D: Device>(
        decoder: &Decoder,
        config: &TrainConfig,
        mean_outputs: f64,
        ranks: usize,
    ) -> Self {
        let tokens_per_step = config.batch.tokens_per_step();
        let positions = config.batch.micro_size() * config.batch.sequence;
        let recomputes = config.batch.recompute;
        let work = Work::new(decoder, config.batch.sequence);
        Self {
            parameters: decoder.layout.count(),
            parameter_bytes: parameter_bytes::<D>(decoder, config, ranks),
            sent_bytes: sent_bytes::<D>(decoder, config, ranks),
            activation_bytes: Workspace::<D>::activation_bytes(decoder, positions, recomputes)
                + continuation_bytes::<D>(decoder, config),
            head_bytes: Workspace::<D>::head_bytes(decoder, positions),
            tokens_per_step,
            operations_per_step: tokens_per_step as f64
                * (work.trunk + work.per_output * mean_outputs),
        }
    }

    /// The cost with the batches of a text, which may have fewer targets than positions: those of
    /// documents are padded.
    #[must_use]
    pub fn of_batches(
        self,
        decoder: &Decoder,
        config: &TrainConfig,
        mean_outputs: f64,
        batches: &TrainingBatches,
    ) -> Self {
        let [targets, length] = batches.means();
        let work = Work::new(decoder, length.round() as usize);
        let positions = config.batch.size as f64 * length;
        Self {
            tokens_per_step: targets.round() as usize,
            operations_per_step: positions * work.trunk + targets * work.per_output * mean_outputs,
            ..self
        }
    }

    /// All bytes together.
    pub fn bytes(&self) -> u64 {
        self.parameter_bytes + self.activation_bytes + self.head_bytes
    }

    /// Fails if the device's available memory is known and too small.
    pub fn check_memory<D: Device>(&self, device: &D) -> Result<(), Error> {
        check_memory(device, Purpose::Training, self.bytes())
    }
}

fn shards(config: &TrainConfig, ranks: usize) -> Shards {
    Shards { count: config.batch.shards.max(1), ranks }
}

/// All parameters and gradients, the moments of a slice, and the gradients that a step in shards
/// keeps and receives.
fn parameter_bytes<D: Device>(decoder: &Decoder, config: &TrainConfig, ranks: usize) -> u64 {
    let (len, partition) = (decoder.layout.len(), partition(decoder, ranks));
    let shards = shards(config, ranks);
    let rank = |rank: usize| {
        let owned = partition.owned(rank);
        let floats = || Sharded::<D>::floats(&partition, shards, rank);
        let kept = if shards.count == 1 { 0 } else { floats() };
        len * (D::WEIGHT_BYTES + size_of::<f32>()) + (2 * owned + kept) * size_of::<f32>()
    };
    (0..ranks).map(rank).max().unwrap_or(0) as u64
}

/// Gradients to the owners of their slices, updated slices to all, and the sums of squares. Losses
/// are left out: a few bytes.
fn sent_bytes<D: Device>(decoder: &Decoder, config: &TrainConfig, ranks: usize) -> u64 {
    let (len, partition) = (decoder.layout.len(), partition(decoder, ranks));
    let parts = shards(config, ranks).parts();
    let rank = |rank: usize| {
        let own = partition.owned(rank);
        let gradients = parts[rank] * (len - own) * size_of::<f32>();
        let sums = 2 * own.div_ceil(NORM_BLOCK) * size_of::<f32>();
        gradients + (ranks - 1) * (D::weight_message_bytes(own) + sums)
    };
    ((0..ranks).map(rank).sum::<usize>() / ranks) as u64
}

/// Bytes for the key-value cache of an objective that generates continuations.
fn continuation_bytes<D: Device>(decoder: &Decoder, config: &TrainConfig) -> u64 {
    if config.objective.name != ObjectiveName::UnlikelihoodSequence {
        return 0;
    }
    let settings = &config.unlikelihood;
    let sequences = settings.continuations(config.batch.sequence);
    Incremental::<D>::bytes(decoder, sequences, settings.window())
}
