//! The corpus of an experiment, and its frequency classes.

use serde::{Deserialize, Serialize};

/// The corpus of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorpusResult {
    /// Its name.
    pub name: String,
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// Training, validation and test split.
    pub splits: Vec<SplitResult>,
}

/// The size of a split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitResult {
    /// `train`, `valid` or `test`.
    pub split: String,
    /// The number of documents.
    pub documents: u64,
    /// The number of words between white space.
    pub words: u64,
    /// The number of tokens.
    pub tokens: u64,
}

/// Frequency classes, as determined by a method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassesResult {
    /// The method.
    pub method: String,
    /// Mean efficiency, Eq. 5 of the paper.
    pub objective: f64,
    /// The number of tokens in each class.
    pub tokens: Vec<usize>,
    /// Each class's share of all occurrences.
    pub masses: Vec<f64>,
    /// Each class's efficiency.
    pub efficiencies: Vec<f64>,
    /// The objective for each number of classes that was tried.
    pub curve: Vec<(usize, f64)>,
}
