//! The results of an experiment: `results.json`, from which a report is made.

mod corpus;
mod load;
mod run;
mod sample;
mod scores;
mod transfer;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use corpus::{ClassesResult, CorpusResult, SplitResult};
pub use load::LoadError;
pub use run::{RunResult, TrainingCost};
pub use sample::{SampleResult, SampleText, SampleToken};
pub use scores::{ClassTrial, Decoding, ScoreSet, SeedScores};
pub use transfer::TransferResult;

use crate::paper::PaperSet;

/// The version of `results.json` that is written and read.
pub const RESULTS_VERSION: u32 = 1;

/// The results of an experiment. Parts that were not run are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// [`RESULTS_VERSION`].
    pub version: u32,
    /// The program's name and version.
    pub made_by: String,
    /// The title of the report.
    pub title: String,
    /// The paper's set whose numbers are shown next to ours.
    #[serde(default)]
    pub paper: Option<PaperSet>,
    /// How prefixes were cut from the test split: `paper` or `lyrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The values for the paper's tables of hyperparameters, by their names in the paper.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hyperparameters: BTreeMap<String, f64>,
    /// The corpus.
    #[serde(default)]
    pub corpus: Option<CorpusResult>,
    /// The frequency classes; those of the main F² model come first.
    #[serde(default)]
    pub classes: Vec<ClassesResult>,
    /// All training runs.
    #[serde(default)]
    pub runs: Vec<RunResult>,
    /// The scores of all models, by decoding; the main ones first.
    #[serde(default)]
    pub scores: Vec<ScoreSet>,
    /// F² models with classes of other methods.
    #[serde(default)]
    pub class_trials: Vec<ClassTrial>,
    /// F² with and without pretraining on another text.
    #[serde(default)]
    pub transfer: Option<TransferResult>,
    /// Continuations of the same prefixes by all models.
    #[serde(default)]
    pub samples: Vec<SampleResult>,
    /// Remarks for the reader.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// In a study of several corpora, the results of each. All other fields except title and
    /// remarks are then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub studies: Vec<Self>,
}

impl Results {
    /// Results without any content.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            version: RESULTS_VERSION,
            made_by: concat!("f2 ", env!("CARGO_PKG_VERSION")).to_owned(),
            title: title.into(),
            ..Self::default()
        }
    }

    /// The scores for one decoding.
    pub fn scores_of(&self, decoding: Decoding) -> Option<&ScoreSet> {
        self.scores.iter().find(|set| set.decoding == decoding)
    }
}
