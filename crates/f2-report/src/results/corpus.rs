//! The text of an experiment, and its frequency classes.

use serde::{Deserialize, Serialize};

/// The text an experiment was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorpusResult {
    /// Its name.
    pub name: String,
    /// The number of different tokens.
    pub vocabulary: usize,
    /// Training, validation and test split.
    pub splits: Vec<SplitResult>,
}

/// The size of a split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitResult {
    /// `train`, `valid` or `test`.
    pub split: String,
    /// Documents.
    pub documents: u64,
    /// Words between white space.
    pub words: u64,
    /// Tokens.
    pub tokens: u64,
}

/// Frequency classes, as a method cut them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassesResult {
    /// The method.
    pub method: String,
    /// Mean efficiency, Eq. 5.
    pub objective: f64,
    /// Tokens in each class.
    pub tokens: Vec<usize>,
    /// Each class's share of all occurrences.
    pub masses: Vec<f64>,
    /// Each class's efficiency.
    pub efficiencies: Vec<f64>,
    /// Objectives over the numbers of classes that were tried.
    pub curve: Vec<(usize, f64)>,
}
