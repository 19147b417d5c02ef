//! How a run starts from a trained model.

use serde::{Deserialize, Serialize};

/// How a run starts from a trained model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InitialConfig {
    /// The initial values of class vectors that the model does not have.
    pub class_vectors: ClassVectors,
}

/// The initial values of class vectors that a model does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassVectors {
    /// Drawn at random.
    #[default]
    Fresh,
    /// The mean of the token vectors of the class, weighted by the tokens' counts.
    Mean,
}
