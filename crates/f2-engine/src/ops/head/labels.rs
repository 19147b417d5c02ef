//! The targets of a batch, on the host.

use std::ops::Range;

/// The target of an ignored position, which contributes no likelihood and no gradient of it.
pub const IGNORED: u32 = u32::MAX;

/// The weights of the positions' losses.
///
/// A mean over `n` positions is `Uniform(1.0 / n as f32)`, with `n` counted over the whole step so
/// that micro-batches add up.
#[derive(Clone, Copy, Debug)]
pub enum Weighting<'a> {
    /// The same weight for all.
    Uniform(f32),
    /// A weight for each: `[positions]`.
    Each(&'a [f32]),
}

impl Weighting<'_> {
    /// The weight of one position.
    pub fn of(self, position: usize) -> f32 {
        match self {
            Self::Uniform(weight) => weight,
            Self::Each(weights) => weights[position],
        }
    }
}

/// Unlikelihood's negative candidates.
///
/// Each candidate `c` adds `-weight · ln max(1 - p(c), floor)`; at the floor it has no gradient.
/// A position's own target is skipped, so the earlier targets of a row can be given as one list of
/// distinct tokens in order of appearance, with a growing range of it for every position. An
/// [`IGNORED`] target skips no candidate.
#[derive(Clone, Copy, Debug)]
pub struct Penalties<'a> {
    /// Lists of distinct tokens, concatenated.
    pub candidates: &'a [u32],
    /// The range of `candidates` for each position; ranges may overlap or be empty.
    pub ranges: &'a [Range<u32>],
    /// α divided by the number of positions.
    pub weight: f32,
    /// The lower bound of `1 - p`.
    pub floor: f32,
}

/// One batch's targets.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// `[positions]`: the next token at each, or [`IGNORED`].
    pub ids: &'a [u32],
    /// The weight of each.
    pub weights: Weighting<'a>,
    /// Unlikelihood, for the plain softmax only.
    pub penalties: Option<Penalties<'a>>,
}

impl<'a> Labels<'a> {
    /// Targets of equal weight, without penalties.
    pub fn uniform(ids: &'a [u32], weight: f32) -> Self {
        Self { ids, weights: Weighting::Uniform(weight), penalties: None }
    }
}
