//! Layer norm, alone and after a residual connection.

use super::dropout::{Dropout, Dropouts};
use crate::Parameter;

/// Layer norms.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Norms: Dropouts {
    /// Layer norm. `x, normed: [rows, width]`; `statistics: [rows, 2]` receives the mean and the
    /// reciprocal standard deviation.
    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        x: &Self::Activations,
        normed: &mut Self::Activations,
        statistics: &mut Self::Floats,
    );
    /// The gradient through a norm: `d_x += …`, all `[rows, width]`.
    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        x: &Self::Activations,
        statistics: &Self::Floats,
        d_normed: &Self::Activations,
        d_x: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// A residual and the norm after it: `sum = x + dropout(branch)`, `normed = norm(sum)`.
    /// All `[rows, width]`; `statistics: [rows, 2]`.
    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        dropout: Dropout<'_, Self>,
        x: &Self::Activations,
        branch: &Self::Activations,
        sum: &mut Self::Activations,
        normed: &mut Self::Activations,
        statistics: &mut Self::Floats,
    );
    /// The gradient through both. `d_sum` holds the gradient of the residual stream from later
    /// layers; the norm's contribution is added to it, and the result is also the gradient of `x`.
    /// `d_branch` receives this gradient through dropout. All `[rows, width]`.
    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        dropout: Dropout<'_, Self>,
        sum: &Self::Activations,
        statistics: &Self::Floats,
        d_normed: &Self::Activations,
        d_sum: &mut Self::Activations,
        d_branch: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
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
    /// Added to the variance before taking its root, as in GPT-2.
    pub const EPSILON: f32 = 1e-5;
}
