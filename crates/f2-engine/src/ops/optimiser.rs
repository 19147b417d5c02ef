//! AdamW over the flat buffers, with its settings and state.

use std::ops::Range;

use super::Memory;

/// Elements whose squares are added up before their sum meets others in
/// [`square_sums`](Optimiser::square_sums).
pub const NORM_BLOCK: usize = 1 << 12;

/// The optimiser: over everything at once, or over one slice of it, as ranks share the work.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Optimiser: Memory {
    /// `norm[0] = √Σ gradients²`.
    fn global_norm(&self, gradients: &Self::Floats, norm: &mut Self::Floats);
    /// Updates all parameters and sets the gradients to zero. `decayed` are the ranges weight
    /// decay works on, ascending. When `norm[0]` is not finite, parameters and moments do not change.
    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Self::Floats,
        weights: &mut Self::Weights,
        moments: &mut Moments<Self>,
        gradients: &mut Self::Floats,
    );

    /// The sum of squares of every block of [`NORM_BLOCK`] of the gradients in `range`, in double
    /// precision. Two floats of `sums` from `at` on hold the bits of each, the lower half first.
    fn square_sums(
        &self,
        range: Range<usize>,
        gradients: &Self::Floats,
        sums: &mut Self::Floats,
        at: usize,
    );
    /// `norm[0]` is the root of the sum of as many `blocks`' sums, as
    /// [`square_sums`](Self::square_sums) wrote them. The order depends on their number alone.
    fn norm_of_sums(&self, blocks: usize, sums: &Self::Floats, norm: &mut Self::Floats);
    /// [`adamw`](Self::adamw) of one piece of the parameters. Moments and gradients have it from `at`
    /// on; its gradients are set to zero.
    fn adamw_piece(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Self::Floats,
        piece: Range<usize>,
        at: usize,
        weights: &mut Self::Weights,
        moments: &mut Moments<Self>,
        gradients: &mut Self::Floats,
    );
}

/// How weight decay acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// On the weights themselves, separately from Adam's step: `AdamW`.
    Decoupled,
    /// Through the gradient, and so through the moments: Adam's L2 penalty.
    Penalty,
}

/// One update's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// This update's learning rate.
    pub learning_rate: f64,
    /// The decay of the mean of gradients.
    pub beta1: f64,
    /// The decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// How strongly decayed ranges are pulled towards zero.
    pub weight_decay: f64,
    /// How the decay acts.
    pub decay: Decay,
    /// Gradients with a larger global norm are scaled down to it; infinity never clips.
    pub clip: f64,
    /// This update's number, from 1: Adam's moments are corrected for their start at zero.
    pub update: u64,
}

/// Adam's running means, in the flat layout of the parameters or of a slice of them.
#[derive(Debug)]
pub struct Moments<D: Memory> {
    /// The mean of gradients.
    pub first: D::Floats,
    /// The mean of squared gradients.
    pub second: D::Floats,
}
