//! Scores by way of decoding and by method of choosing classes.

use std::fmt;

use f2_classes::Method;
use serde::{Deserialize, Serialize};

use crate::record::ResultRecord;

/// The scores of several models that were decoded in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreSet {
    /// How they were decoded.
    pub decoding: Decoding,
    /// The models.
    pub records: Vec<ResultRecord>,
    /// The same models trained from other seeds, and scored alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_seeds: Vec<SeedScores>,
}

impl ScoreSet {
    /// Scores of models that were trained once.
    pub fn new(decoding: Decoding, records: Vec<ResultRecord>) -> Self {
        Self { decoding, records, other_seeds: Vec::new() }
    }
}

/// The scores of models that were trained from one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedScores {
    /// The seed.
    pub seed: u64,
    /// The models, in the order of the set they belong to.
    pub records: Vec<ResultRecord>,
}

/// A way to continue a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "strategy")]
pub enum Decoding {
    /// In a way the results do not tell.
    Given,
    /// The most probable token; of F² the most probable class, and token in it.
    Greedy,
    /// A draw among the k most probable tokens; of F² within a class that was drawn first.
    TopK {
        /// How many.
        k: usize,
    },
    /// Top-k over the full posterior: decoupled decoding off.
    Joint {
        /// How many.
        k: usize,
    },
    /// Top-k with classes drawn from a nucleus.
    ClassNucleus {
        /// How many.
        k: usize,
        /// The mass of the nucleus.
        p: f64,
    },
    /// Top-k as the authors' program decodes F²: classes from a nucleus of 0.9, a class smaller
    /// than k filled up from further ones. Its classes are those of the authors' rule.
    AuthorsProgram {
        /// How many.
        k: usize,
    },
}

impl Decoding {
    /// The mass of the class nucleus in the authors' program.
    pub const AUTHORS_CLASS_NUCLEUS: f64 = 0.9;
}

impl fmt::Display for Decoding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => out.write_str("texts as they were given"),
            Self::Greedy => out.write_str("greedy"),
            Self::TopK { k } => write!(out, "top-k, k = {k}"),
            Self::Joint { k } => write!(out, "top-k of the full posterior, k = {k}"),
            Self::ClassNucleus { k, p } => write!(out, "top-k, k = {k}, class nucleus {p}"),
            Self::AuthorsProgram { k } => write!(out, "as the authors' program, k = {k}"),
        }
    }
}

/// An F² model trained with classes of some method, and its scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassTrial {
    /// How they were cut.
    #[serde(rename = "rule")]
    pub method: Method,
    /// How many classes.
    pub k: usize,
    /// Its scores.
    pub record: ResultRecord,
}
