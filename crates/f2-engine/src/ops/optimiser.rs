//! AdamW over the flat buffers, with its settings and state.

use std::ops::Range;

use super::Memory;

/// The number of elements in each block whose squares [`square_sums`](Optimiser::square_sums) sums.
pub const NORM_BLOCK: usize = 1 << 12;

/// The optimiser: over all parameters at once, or over one rank's slice.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Optimiser: Memory {
    /// `norm[0] = √Σ gradients²`.
    fn global_norm(&self, gradients: &Self::Floats, norm: &mut Self::Floats);
    /// Updates all parameters and sets the gradients to zero. `decayed` are the ranges that weight
    /// decay applies to, ascending. If `norm[0]` is not finite, parameters and moments do not
    /// change.
    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Self::Floats,
        weights: &mut Self::Weights,
        moments: &mut Moments<Self>,
        gradients: &mut Self::Floats,
    );

    /// The sum of squares of every block of [`NORM_BLOCK`] gradients in `range`, in double
    /// precision. Each is written to two floats of `sums`, from `at` on, as the lower and upper
    /// half of its bits.
    fn square_sums(
        &self,
        range: Range<usize>,
        gradients: &Self::Floats,
        sums: &mut Self::Floats,
        at: usize,
    );
    /// `norm[0] = √Σ` over the first `blocks` sums written by [`square_sums`](Self::square_sums).
    /// The order of summation depends only on their number.
    fn norm_of_sums(&self, blocks: usize, sums: &Self::Floats, norm: &mut Self::Floats);
    /// [`adamw`](Self::adamw) for the range `piece` of the parameters, whose moments and gradients
    /// begin at `at`. These gradients are set to zero.
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
    /// Applied to the weights directly, separately from Adam's step: `AdamW`.
    Decoupled,
    /// Added to the gradient, and so to the moments: Adam with an L2 penalty.
    Penalty,
}

/// The settings of one update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// The learning rate of this update.
    pub learning_rate: f64,
    /// The decay rate of the first moment.
    pub beta1: f64,
    /// The decay rate of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// The weight decay coefficient.
    pub weight_decay: f64,
    /// How the decay acts.
    pub decay: Decay,
    /// Gradients are scaled down to this global norm if theirs is larger; infinity disables
    /// clipping.
    pub clip: f64,
    /// The number of this update, from 1, for the bias correction of the moments.
    pub update: u64,
}

/// Adam's moments, in the flat layout of the parameters or of a slice of them.
#[derive(Debug)]
pub struct Moments<D: Memory> {
    /// The running mean of the gradients.
    pub first: D::Floats,
    /// The running mean of the squared gradients.
    pub second: D::Floats,
}
