//! A training run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The model.
    pub name: String,
    /// The number of parameters.
    pub parameters: usize,
    /// The device it was trained on.
    pub device: String,
    /// The number of steps.
    pub steps: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Perplexity on the test split, if it was computed.
    pub perplexity: Option<f64>,
    /// Perplexity on the validation split of the checkpoint that is used: the best one, or the last
    /// one of a fine-tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_perplexity: Option<f64>,
    /// All settings by name, such as `model.layers`.
    pub settings: BTreeMap<String, String>,
    /// Training loss over steps, in nats.
    pub training: Vec<(u64, f64)>,
    /// Validation loss over steps, in nats.
    pub validation: Vec<(u64, f64)>,
    /// The cost of the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<TrainingCost>,
}

/// The cost of a training run, without the run it was fine-tuned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingCost {
    /// The number of target tokens.
    pub tokens: u64,
    /// Seconds of training steps, without validation and checkpoints.
    pub step_seconds: f64,
    /// Floating-point operations of the training steps.
    pub operations: f64,
    /// Seconds of the whole command, with start, validation and checkpoints; if the run was
    /// interrupted, those of the last session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<f64>,
}

impl RunResult {
    /// A setting by its name, such as `model.layers`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The model it was fine-tuned from, by its name in the paper's tables. `None` if it was
    /// trained from scratch.
    pub fn starts_from(&self) -> Option<&'static str> {
        match self.setting("objective.name")? {
            "face" => Some("MLE"),
            "unlikelihood-sequence" => Some("UL-token"),
            _ => None,
        }
    }
}
