use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The model.
    pub name: String,
    /// How many parameters it has.
    pub parameters: usize,
    /// The device it was trained on.
    pub device: String,
    /// Steps made.
    pub steps: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Perplexity on the test split, or on the validation split where that is all there is.
    pub perplexity: Option<f64>,
    /// Every setting by its name, such as `model.layers`.
    pub settings: BTreeMap<String, String>,
    /// Training loss over steps, in nats.
    pub training: Vec<(u64, f64)>,
    /// Validation loss over steps, in nats.
    pub validation: Vec<(u64, f64)>,
}
