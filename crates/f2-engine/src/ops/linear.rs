//! Linear layers, with GELU after or before them.

use super::Memory;
use crate::Parameter;

/// Linear layers.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Linears: Memory {
    /// `y = x · weightᵀ + bias`. `x: [rows, inputs]`, `y: [rows, outputs]`.
    fn linear(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        y: &mut Self::Activations,
    );
    /// A linear layer and GELU (tanh form): `before = x · weightᵀ + bias`, `y = gelu(before)`,
    /// both `[rows, outputs]`.
    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        before: &mut Self::Activations,
        y: &mut Self::Activations,
    );
    /// The gradients of `x`, weight and bias from `d_y: [rows, outputs]`.
    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        d_y: &Self::Activations,
        d_x: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// [`linear_backward`](Self::linear_backward) of a layer with input `x = gelu(before)`:
    /// propagates through GELU to `d_before: [rows, inputs]`.
    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        before: &Self::Activations,
        x: &Self::Activations,
        d_y: &Self::Activations,
        d_before: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
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
