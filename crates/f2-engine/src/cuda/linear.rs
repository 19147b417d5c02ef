//! Linear layers, with GELU after or before them.

use super::launch::{Grid, arguments};
use super::memory::{Buffer, Weights};
use super::product::{Choice, Finish, Matrix, Target};
use super::{Cuda, Precision};
use crate::Linear;

impl<P: Precision> Cuda<P> {
    /// `y = x · weightᵀ + bias`.
    pub(super) fn linear_rows(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        y: &Buffer<P::Element>,
    ) {
        let (sizes, a, b) = forward_product(rows, linear, weights, x);
        let (to, bias) = (Target::real(y.at(0), linear.outputs()), weights.real(linear.bias));
        if !self.library_product(sizes, a, b, to, Finish::Bias(bias), Choice::Measured) {
            self.layer_product(sizes, a, b, to);
            self.add_bias(rows, linear, bias, y);
        }
    }

    /// `before = x · weightᵀ + bias`, `y = gelu(before)`.
    pub(super) fn linear_gelu_rows(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        before: &Buffer<P::Element>,
        y: &Buffer<P::Element>,
    ) {
        let (sizes, a, b) = forward_product(rows, linear, weights, x);
        let (to, bias) = (Target::real(y.at(0), linear.outputs()), weights.real(linear.bias));
        let finish = Finish::BiasGelu { bias, before: before.at(0) };
        if !self.library_product(sizes, a, b, to, finish, Choice::Measured) {
            self.linear_rows(rows, linear, weights, x, before);
            let chunks = (rows * linear.outputs()).div_ceil(8);
            self.launch("gelu", Grid::items(chunks), arguments![chunks, before.at(0), y.at(0)]);
        }
    }

    fn add_bias(&self, rows: usize, linear: Linear, bias: u64, y: &Buffer<P::Element>) {
        let count = rows * linear.outputs();
        let arguments = arguments![count, linear.outputs(), bias, y.at(0)];
        self.launch("add_bias", Grid::items(count), arguments);
    }

    /// The gradients of `x`, weight and bias; with `before`, goes on through GELU.
    pub(super) fn linear_rows_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        before: Option<&Buffer<P::Element>>,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        d_x: &Buffer<P::Element>,
        gradients: &Buffer<f32>,
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let d = Matrix::new(d_y.at(0), outputs);
        self.add_column_sums(rows, outputs, d_y.at(0), gradients.at(linear.bias.offset));
        let x = Matrix::new(x.at(0), inputs);
        let to = Target::sum(gradients.at(linear.weight.offset), inputs);
        self.layer_product([outputs, inputs, rows], d.transposed(), x, to);
        let weight = Matrix::new(weights.real(linear.weight), inputs);
        let (sizes, to) = ([rows, inputs, outputs], Target::real(d_x.at(0), inputs));
        self.layer_product(sizes, d, weight, to);
        if let Some(before) = before {
            // A pass of its own: the library's product takes longer if it goes through GELU.
            self.gelu_backward(rows, inputs, before.at(0), d_x.at(0));
        }
    }
}

fn forward_product<P: Precision>(
    rows: usize,
    linear: Linear,
    weights: &Weights<P>,
    x: &Buffer<P::Element>,
) -> ([usize; 3], Matrix, Matrix) {
    let (inputs, outputs) = (linear.inputs(), linear.outputs());
    let weight = Matrix::new(weights.real(linear.weight), inputs);
    ([rows, outputs, inputs], Matrix::new(x.at(0), inputs), weight.transposed())
}
