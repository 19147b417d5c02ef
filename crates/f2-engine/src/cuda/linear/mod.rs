//! Linear layers, with GELU after or before them.

mod column_sums;
mod fused;

use super::memory::{Buffer, Weights};
use super::product::{Choice, Finish, Matrix, Target};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{Linear, Linears};
use column_sums::{SUMMED_ROWS, by_columns};

pub(super) use column_sums::{ColumnSums, LastSums};
#[cfg(test)]
pub(super) use fused::KERNELS as FUSED_KERNELS;

kernels! {
    GELU: (usize, Address, Address) = gelu;
    GELU_BACKWARD: (usize, usize, usize, Address, Address, Address) = gelu_backward;
    ADD_BIAS: (usize, usize, Address, Address) = add_bias;
    COLUMN_SUMS: (usize, usize, usize, Address, Address) = column_sums;
    ADD_PARTIAL: (usize, usize, usize, Address, Address, Address) = add_partial;
}

impl<P: Precision> Linears for Cuda<P> {
    fn linear(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        y: &mut Buffer<P::Element>,
    ) {
        let (sizes, a, b) = forward_product(rows, linear, weights, x);
        let (to, bias) = (Target::real(y.at(0), linear.outputs()), weights.real(linear.bias));
        if !self.library_product(sizes, a, b, to, Finish::Bias(bias), Choice::Measured) {
            self.layer_product(sizes, a, b, to);
            self.add_bias(rows, linear, bias, y);
        }
    }

    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        before: &mut Buffer<P::Element>,
        y: &mut Buffer<P::Element>,
    ) {
        let (sizes, a, b) = forward_product(rows, linear, weights, x);
        let (to, bias) = (Target::real(y.at(0), linear.outputs()), weights.real(linear.bias));
        if self.fused_gelu(sizes, [a.start, b.start, bias], [before.at(0), y.at(0)]) {
            return;
        }
        let finish = Finish::BiasGelu { bias, before: before.at(0) };
        if !self.library_product(sizes, a, b, to, finish, Choice::Measured) {
            self.linear(rows, linear, weights, x, before);
            let chunks = (rows * linear.outputs()).div_ceil(8);
            // SAFETY: the operation's buffers have these sizes.
            unsafe { self.launch(GELU, Grid::items(chunks), (chunks, before.at(0), y.at(0))) };
        }
    }

    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        d_x: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        self.parameter_gradients(rows, linear, x, d_y, gradients);
        self.input_gradient(rows, linear, weights, d_y, d_x);
    }

    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        before: &Buffer<P::Element>,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        d_before: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        self.parameter_gradients(rows, linear, x, d_y, gradients);
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let operands = [d_y.at(0), weights.real(linear.weight), before.at(0)];
        if !self.fused_gelu_backward([rows, inputs, outputs], operands, d_before.at(0)) {
            self.input_gradient(rows, linear, weights, d_y, d_before);
            // A separate pass: cuBLASLt's product with a GELU epilogue takes longer.
            self.gelu_backward(rows, inputs, before.at(0), d_before.at(0));
        }
    }
}

impl<P: Precision> Cuda<P> {
    fn parameter_gradients(
        &self,
        rows: usize,
        linear: Linear,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        gradients: &Buffer<f32>,
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        self.add_column_sums(rows, outputs, d_y.at(0), gradients.at(linear.bias.offset));
        let (d, x) = (Matrix::new(d_y.at(0), outputs), Matrix::new(x.at(0), inputs));
        let to = Target::sum(gradients.at(linear.weight.offset), inputs);
        self.layer_product([outputs, inputs, rows], d.transposed(), x, to);
    }

    fn input_gradient(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        d_y: &Buffer<P::Element>,
        d_x: &Buffer<P::Element>,
    ) {
        let (inputs, outputs) = (linear.inputs(), linear.outputs());
        let d = Matrix::new(d_y.at(0), outputs);
        let weight = Matrix::new(weights.real(linear.weight), inputs);
        let to = Target::real(d_x.at(0), inputs);
        self.layer_product([rows, inputs, outputs], d, weight, to);
    }

    fn add_bias(&self, rows: usize, linear: Linear, bias: u64, y: &Buffer<P::Element>) {
        let count = rows * linear.outputs();
        let arguments = (count, linear.outputs(), bias, y.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(ADD_BIAS, Grid::items(count), arguments) };
    }

    /// The backward pass of GELU, in place: `d: [rows, columns]`; leaves the sums of its columns.
    fn gelu_backward(&self, rows: usize, columns: usize, before: u64, d: u64) {
        let blocks = rows.div_ceil(SUMMED_ROWS);
        let Some(partial) = self.scratch(blocks * columns * size_of::<f32>()) else { return };
        let arguments = (rows, columns, SUMMED_ROWS, before, d, partial);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(GELU_BACKWARD, by_columns(columns, blocks), arguments) };
        self.leave_sums(ColumnSums { of: d, rows, columns, blocks, partial });
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
