//! The targets of a batch, as the host knows them.

use std::ops::Range;

/// A target that is none: the position adds nothing to the likelihood and gets no gradient
/// from it.
pub const IGNORED: u32 = u32::MAX;

/// How much each position's loss counts.
///
/// A mean over `n` positions is `Uniform(1.0 / n as f32)`; `n` counts the whole step, so that
/// micro-batches add up.
#[derive(Clone, Copy, Debug)]
pub enum Weighting<'a> {
    /// All alike.
    Uniform(f32),
    /// `[positions]`.
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

/// Tokens a position must not favour: unlikelihood's candidates.
///
/// Each candidate `c` adds `-weight · ln max(1 - p(c), floor)`; at the floor it has no gradient.
/// A position's own target is never its candidate, so earlier targets of a row can be given as
/// one list of distinct tokens in order of appearance and a growing range of it for every
/// position. [`IGNORED`] targets take nothing out.
#[derive(Clone, Copy, Debug)]
pub struct Penalties<'a> {
    /// Lists of distinct tokens, one after the other.
    pub candidates: &'a [u32],
    /// For every position, its part of `candidates`; ranges may overlap or be empty.
    pub ranges: &'a [Range<u32>],
    /// α over the number of positions.
    pub weight: f32,
    /// The smallest `1 - p` that counts.
    pub floor: f32,
}

/// One batch's targets.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// `[positions]`: the next token of each, or [`IGNORED`].
    pub ids: &'a [u32],
    /// How much each counts.
    pub weights: Weighting<'a>,
    /// Unlikelihood, for the plain softmax only.
    pub penalties: Option<Penalties<'a>>,
}

impl<'a> Labels<'a> {
    /// Targets all of one weight, without penalties.
    pub fn uniform(ids: &'a [u32], weight: f32) -> Self {
        Self { ids, weights: Weighting::Uniform(weight), penalties: None }
    }
}
