//! Which parameters an operation works with. Handles only: cheap to copy, nothing is owned.

use crate::Parameter;

/// Token vectors and learned positions, summed.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// `[vocabulary, width]`.
    pub tokens: Parameter,
    /// `[longest sequence, width]`.
    pub positions: Parameter,
}

/// Layer norm over a row: zero mean, unit variance, then gain and bias.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// `[width]`.
    pub gain: Parameter,
    /// `[width]`.
    pub bias: Parameter,
}

impl Norm {
    /// Added to the variance before its root is taken, as GPT-2 does.
    pub const EPSILON: f32 = 1e-5;
}

/// `y = x · weightᵀ + bias`.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// `[outputs, inputs]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Parameter,
}

impl Linear {
    /// The width of `x`.
    pub fn inputs(self) -> usize {
        self.weight.columns
    }

    /// The width of `y`.
    pub fn outputs(self) -> usize {
        self.weight.rows
    }
}

/// The plain output layer: one softmax over the vocabulary, no biases.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxHead {
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
}

/// The frequency-factorised output layer: a softmax over classes and one within each class.
///
/// Ids are frequency ranks, so class `j` owns the contiguous ids `ends[j - 1]..ends[j]` and its
/// token vectors are a slice of the output matrix.
#[derive(Clone, Debug)]
pub struct F2Head {
    /// `U`, `[classes, width]`.
    pub classes: Parameter,
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
    /// Where each class ends, ascending; the last is the vocabulary.
    pub ends: Vec<u32>,
}

impl F2Head {
    /// The ids class `class` owns.
    pub fn members(&self, class: usize) -> std::ops::Range<usize> {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[class] as usize
    }

    /// The class that owns `id`.
    pub fn class_of(&self, id: u32) -> usize {
        self.ends.partition_point(|&end| end <= id)
    }
}
