//! The losses and their settings.

use serde::{Deserialize, Serialize};

/// The loss that is minimised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectiveConfig {
    /// The loss.
    pub name: ObjectiveName,
}

/// The losses a decoder can be trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveName {
    /// Maximum likelihood: the plain softmax over the whole vocabulary.
    Mle,
    /// F²-Softmax: a softmax over frequency classes times one inside the target's class.
    #[default]
    F2,
    /// Unlikelihood of tokens: maximum likelihood with penalties on earlier targets.
    Unlikelihood,
    /// Unlikelihood of tokens and of sequences: fine-tunes a model of `unlikelihood`.
    UnlikelihoodSequence,
    /// Frequency-aware cross-entropy: frequent targets count less.
    Face,
}

impl ObjectiveName {
    /// Every objective, in the order they are listed to the user.
    pub const ALL: [Self; 5] =
        [Self::Mle, Self::F2, Self::Unlikelihood, Self::UnlikelihoodSequence, Self::Face];

    /// The name as it is written in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mle => "mle",
            Self::F2 => "f2",
            Self::Unlikelihood => "unlikelihood",
            Self::UnlikelihoodSequence => "unlikelihood-sequence",
            Self::Face => "face",
        }
    }

    /// The objective of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|objective| objective.as_str() == name)
    }

    /// A one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Mle => "Plain softmax, maximum likelihood",
            Self::F2 => "F²-Softmax",
            Self::Unlikelihood => {
                "Unlikelihood of tokens: plain softmax, earlier targets penalised"
            }
            Self::UnlikelihoodSequence => {
                "Unlikelihood of tokens and sequences; fine-tunes a model of `unlikelihood`"
            }
            Self::Face => "Frequency-aware cross-entropy; fine-tunes a model of `mle`",
        }
    }

    /// Whether it needs frequency classes.
    pub fn needs_classes(self) -> bool {
        self == Self::F2
    }

    /// The name of a model trained with it in the paper's tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mle => "MLE",
            Self::F2 => "F²-Softmax",
            Self::Unlikelihood => "UL-token",
            Self::UnlikelihoodSequence => "UL-token+seq",
            Self::Face => "FACE",
        }
    }

    /// The objective of the model it fine-tunes; `None` if it trains from scratch.
    pub fn starts_from(self) -> Option<Self> {
        match self {
            Self::UnlikelihoodSequence => Some(Self::Unlikelihood),
            Self::Face => Some(Self::Mle),
            Self::Mle | Self::F2 | Self::Unlikelihood => None,
        }
    }

    /// Whether it fine-tunes a trained model.
    pub fn fine_tunes(self) -> bool {
        self.starts_from().is_some()
    }

    /// Whether its loss is the negative log-likelihood itself, so that its exponential is a
    /// perplexity.
    pub fn is_likelihood(self) -> bool {
        matches!(self, Self::Mle | Self::F2)
    }
}

/// The settings of unlikelihood training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnlikelihoodConfig {
    /// The weight of the penalties of a token step relative to its likelihood.
    pub alpha: f64,
    /// The probability that a step is a sequence step, 0 to 1.
    pub sequence_rate: f64,
    /// Tokens of each prefix that a sequence step continues.
    pub prefix: usize,
    /// Tokens it adds to each prefix.
    pub continuation: usize,
    /// Length of the n-grams whose repetition is penalised.
    pub ngram: usize,
    /// Whether the last n-gram of a continuation is examined, which the published programs
    /// never do.
    pub last_ngram: bool,
}

impl UnlikelihoodConfig {
    /// Tokens of a prefix and its continuation.
    pub fn window(&self) -> usize {
        self.prefix + self.continuation
    }

    /// How many continuations a sequence step makes: as many as fit a row of the batch.
    pub fn continuations(&self, sequence: usize) -> usize {
        sequence / self.window()
    }
}

impl Default for UnlikelihoodConfig {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            sequence_rate: 0.5,
            prefix: 50,
            continuation: 100,
            ngram: 4,
            last_ngram: false,
        }
    }
}

/// The settings of FACE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaceConfig {
    /// The variant: what is counted and what is weighted.
    pub variant: FaceVariant,
}

/// FACE's four variants: what is counted (**o**utput or **g**round truth), and whether a token
/// (**pr**e-weight) or a position (**po**st-weight) is weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaceVariant {
    /// Predictions are counted; a target weighs less the more often it was predicted.
    #[default]
    Opr,
    /// Predictions are counted; a position weighs more if its prediction is more frequent than its
    /// target.
    Opo,
    /// As `opr`, but targets are counted.
    Gpr,
    /// As `opo`, but targets are counted.
    Gpo,
}

impl FaceVariant {
    /// Whether predictions are counted; otherwise targets are.
    pub fn counts_predictions(self) -> bool {
        matches!(self, Self::Opr | Self::Opo)
    }

    /// Whether tokens have weights; otherwise positions do.
    pub fn weighs_before(self) -> bool {
        matches!(self, Self::Opr | Self::Gpr)
    }
}
