//! The settings of a training run: defaults, presets, files and the origin of every value.

mod initial;
mod layers;
mod lines;
mod objective;
mod preset;
mod range;
mod seed;
mod spelling;

use serde::{Deserialize, Serialize};

pub use initial::{ClassVectors, InitialConfig};
pub use layers::{ConfigLayers, FINE_TUNING_STEPS, Origin, Resolved, Setting, every_setting};
pub(crate) use layers::{flatten, in_words};
pub(crate) use lines::{Leaf, leaves, line_of};
pub use objective::{FaceConfig, FaceVariant, ObjectiveConfig, ObjectiveName, UnlikelihoodConfig};
pub use preset::Preset;
pub(crate) use spelling::nearest;

/// Everything that determines the outcome of a run, apart from the corpus, the frequency classes
/// and the device it runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Decides the initial weights, the order of the windows and every dropout mask.
    #[serde(with = "seed")]
    pub seed: u64,
    /// The decoder.
    pub model: ModelConfig,
    /// The loss that is minimised.
    pub objective: ObjectiveConfig,
    /// The penalties of unlikelihood training; other objectives ignore them.
    pub unlikelihood: UnlikelihoodConfig,
    /// The weights of FACE; other objectives ignore them.
    pub face: FaceConfig,
    /// How the run starts from a trained model; ignored if it starts from random values.
    pub initial: InitialConfig,
    /// How much text a step sees, and in which order.
    pub batch: BatchConfig,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate schedule.
    pub schedule: ScheduleConfig,
    /// When training ends.
    pub budget: BudgetConfig,
    /// When and on how much text validation perplexity is evaluated.
    pub evaluation: EvaluationConfig,
    /// When checkpoints are written.
    pub checkpoint: CheckpointConfig,
}

/// The shape of the GPT-2 decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Transformer blocks.
    pub layers: usize,
    /// Width of the hidden states.
    pub width: usize,
    /// Attention heads; must divide the width.
    pub heads: usize,
    /// Width inside the feed-forward layer.
    pub feed_forward: usize,
    /// Probability of dropping a value after the embedding, the attention and the feed-forward
    /// layer.
    pub dropout: f64,
    /// Whether the output matrix is the token embedding itself.
    pub tied: bool,
    /// Whether the weights that write into the residual stream are initialised smaller, by a factor
    /// of `1 / sqrt(2 · layers)`, as in GPT-2.
    pub residual_scaling: bool,
    /// Size of the vocabulary. The corpus decides; a number set by hand must agree with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
}

/// How much text a step sees, and in which order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchConfig {
    /// Tokens in a window; also the number of positions the model knows.
    pub sequence: usize,
    /// Windows per optimiser step.
    pub size: usize,
    /// Windows per forward and backward pass (micro-batch); 0 means all those of a step, or of a
    /// shard. Smaller micro-batches need less memory and give the same step.
    pub micro: usize,
    /// Whether only the inputs of blocks are saved for the backward pass, which recomputes the
    /// rest: about a fifth of the memory for activations, a fifth more work, and the same bits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recompute: bool,
    /// Equal parts of a step, whose gradients are added along a fixed tree. Any number of ranks up
    /// to the number of shards gives the same bits. 0 means the fewest that give each rank the run
    /// starts with at least one.
    #[serde(skip_serializing_if = "is_zero")]
    pub shards: usize,
    /// The order in which windows are read.
    pub order: WindowOrder,
    /// Documents with fewer tokens are left out; only for the order `documents`.
    pub shortest: usize,
}

impl BatchConfig {
    /// Windows per forward and backward pass.
    pub fn micro_size(&self) -> usize {
        if self.micro == 0 { self.shard_size() } else { self.micro }
    }

    /// Windows of a shard.
    pub fn shard_size(&self) -> usize {
        self.size / self.shards.max(1)
    }

    /// Targets predicted by one optimiser step.
    pub fn tokens_per_step(&self) -> usize {
        self.size * self.sequence
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The order in which windows are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowOrder {
    /// A new permutation of all windows in every epoch.
    #[default]
    Shuffled,
    /// The text cut into as many contiguous rows as a step has windows, read side by side.
    Streams,
    /// One document per window, longer ones cut into several; windows of a step are similarly long.
    Documents,
}

/// Adam, weight decay and gradient clipping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// The peak learning rate of the schedule.
    pub learning_rate: f64,
    /// Decay of the running mean of the gradient.
    pub beta1: f64,
    /// Decay of the running mean of the squared gradient.
    pub beta2: f64,
    /// Added to the root of the mean squared gradient.
    pub epsilon: f64,
    /// Strength of the weight decay.
    pub weight_decay: f64,
    /// Where the weight decay acts.
    pub decay: DecayForm,
    /// Largest global norm of the gradient; longer ones are scaled down. 0 disables clipping.
    pub clip: f64,
}

/// Where weight decay acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecayForm {
    /// On the weights, separately from Adam's step (`AdamW`).
    #[default]
    Decoupled,
    /// On the gradient, before Adam's step.
    L2,
}

/// The learning rate schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// The curve after the warm-up.
    pub shape: ScheduleShape,
    /// Steps over which the learning rate rises from zero.
    pub warmup_steps: u64,
    /// Where the curve ends, as a fraction of its peak.
    pub final_fraction: f64,
}

/// The curve of the learning rate after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleShape {
    /// Stays at the peak.
    Constant,
    /// Falls linearly.
    Linear,
    /// Falls along half a cosine.
    #[default]
    Cosine,
}

/// When training ends: at the first limit reached. The schedule follows the same limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// Optimiser steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Passes over the training split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Targets predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Minutes of training, including those before a resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
}

/// When and on how much text validation perplexity is evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Steps between evaluations; 0 evaluates only at the end.
    pub every_steps: u64,
    /// Tokens of the validation split that are read; 0 reads all of it.
    pub max_tokens: u64,
    /// Evaluations in a row without a better perplexity that end the run; 0 disables this.
    pub patience: u64,
}

/// When checkpoints are written. One is always written at the end, and when a run is stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Steps between checkpoints; 0 disables this.
    pub every_steps: u64,
    /// Minutes between checkpoints; 0 disables this.
    pub every_minutes: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            layers: 4,
            width: 256,
            heads: 4,
            feed_forward: 1024,
            dropout: 0.1,
            tied: false,
            residual_scaling: false,
            vocabulary: None,
        }
    }
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            sequence: 256,
            size: 8,
            micro: 0,
            recompute: false,
            shards: 0,
            order: WindowOrder::Shuffled,
            shortest: 0,
        }
    }
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        Self {
            learning_rate: 3e-4,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.001,
            decay: DecayForm::Decoupled,
            clip: 0.25,
        }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { shape: ScheduleShape::Cosine, warmup_steps: 100, final_fraction: 0.0 }
    }
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self { every_steps: 500, max_tokens: 0, patience: 0 }
    }
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every_steps: 0, every_minutes: 5.0 }
    }
}
