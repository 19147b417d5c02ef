//! The models of the paper's tables.

use f2_lm::config::ObjectiveName;
use serde::{Deserialize, Serialize};

/// A model of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Maximum likelihood.
    Mle,
    /// Frequency-aware cross-entropy, fine-tuned from maximum likelihood.
    Face,
    /// Token-level unlikelihood.
    Unlikelihood,
    /// Sequence-level unlikelihood, fine-tuned from the token-level one.
    UnlikelihoodSequence,
    /// F²-Softmax.
    F2,
}

impl Model {
    /// The objective it is trained with.
    pub fn objective(self) -> ObjectiveName {
        match self {
            Self::Mle => ObjectiveName::Mle,
            Self::Face => ObjectiveName::Face,
            Self::Unlikelihood => ObjectiveName::Unlikelihood,
            Self::UnlikelihoodSequence => ObjectiveName::UnlikelihoodSequence,
            Self::F2 => ObjectiveName::F2,
        }
    }

    /// Its name in stages and files: that of its objective.
    pub fn key(self) -> &'static str {
        self.objective().as_str()
    }

    /// Its name in the paper's tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mle => "MLE",
            Self::Face => "FACE",
            Self::Unlikelihood => "UL-token",
            Self::UnlikelihoodSequence => "UL-token+seq",
            Self::F2 => "F²-Softmax",
        }
    }

    /// The model it is fine-tuned from, where it is not trained from scratch.
    pub fn starts_from(self) -> Option<Self> {
        match self {
            Self::Face => Some(Self::Mle),
            Self::UnlikelihoodSequence => Some(Self::Unlikelihood),
            Self::Mle | Self::Unlikelihood | Self::F2 => None,
        }
    }
}
