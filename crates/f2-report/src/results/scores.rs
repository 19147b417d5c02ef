//! Scores by decoding and by class method.

use std::fmt;

use f2_classes::Method;
use serde::{Deserialize, Serialize};

use crate::record::ResultRecord;

/// The scores of several models with the same decoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreSet {
    /// How they were decoded.
    pub decoding: Decoding,
    /// The models.
    pub records: Vec<ResultRecord>,
    /// The scores of the same models trained from other seeds.
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
    /// The models, in the order of the set.
    pub records: Vec<ResultRecord>,
}

/// A way to continue a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "strategy")]
pub enum Decoding {
    /// Unknown: texts that were given.
    Given,
    /// The most probable token; with F², the most probable token of the most probable class.
    Greedy,
    /// Sampling from the k most probable tokens; with F², within a class that is sampled first.
    TopK {
        /// The k of top-k.
        k: usize,
    },
    /// Top-k sampling from the full posterior: decoupled decoding off.
    Joint {
        /// The k of top-k.
        k: usize,
    },
    /// Top-k sampling with classes sampled from a nucleus.
    ClassNucleus {
        /// The k of top-k.
        k: usize,
        /// The mass of the nucleus.
        p: f64,
    },
    /// Top-k sampling of F² as in the authors' program: classes are sampled from a nucleus of 0.9,
    /// and a class smaller than k is filled up from further ones. The classes are those of the
    /// authors' method.
    AuthorsProgram {
        /// The k of top-k.
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
    /// The method of the classes.
    #[serde(rename = "rule")]
    pub method: Method,
    /// The number of classes.
    pub k: usize,
    /// Its scores.
    pub record: ResultRecord,
}
