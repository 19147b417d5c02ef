//! Layer norm, residuals and dropout.

use f2_engine::{Device, Dropout, Layout, Linear, Norm};

use super::{Bench, Outcome, Scenario, compare};

/// The width of the input of the last layer of a residual's branch.
const INPUTS: usize = 8;

struct Norms {
    rows: usize,
    width: usize,
    probability: f32,
}

impl Norms {
    fn parts(&self) -> (Layout, [Norm; 2], Linear) {
        let mut layout = Layout::new();
        let norms = ["plain", "residual"].map(|name| Norm {
            gain: layout.add(format!("{name} gain"), &[self.width], false),
            bias: layout.add(format!("{name} bias"), &[self.width], false),
        });
        let branch_end = Linear {
            weight: layout.add("weight", &[self.width, INPUTS], true),
            bias: layout.add("bias", &[self.width], false),
        };
        (layout, norms, branch_end)
    }
}

impl Scenario for Norms {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, [plain, residual], branch_end) = self.parts();
        let rows = self.rows;
        let size = rows * self.width;
        let [x, branch, d_normed] = [1, 2, 3].map(|place| bench.input(size, place));
        let [mut d_x, mut d_sum] = [4, 5].map(|place| bench.input(size, place));
        let [mut normed, mut sum, mut sum_normed, mut d_branch] =
            [0; 4].map(|_| bench.output(size));
        let (inputs, mut d_inputs) = (bench.input(rows * INPUTS, 6), bench.output(rows * INPUTS));
        let [mut statistics, mut sum_statistics] = [0; 2].map(|_| bench.floats(2 * rows));
        let Bench { device, weights, gradients, clock } = bench;
        let dropout = Dropout { probability: self.probability, site: 7, clock };
        device.norm(rows, plain, weights, &x, &mut normed, &mut statistics);
        let from = (&x, &statistics, &d_normed);
        device.norm_backward(rows, plain, weights, from.0, from.1, from.2, &mut d_x, gradients);
        device.residual_norm(
            rows,
            residual,
            weights,
            dropout,
            &x,
            &branch,
            &mut sum,
            &mut sum_normed,
            &mut sum_statistics,
        );
        device.residual_norm_backward(
            rows,
            residual,
            weights,
            dropout,
            &sum,
            &sum_statistics,
            &d_normed,
            &mut d_sum,
            &mut d_branch,
            gradients,
        );
        // The norm's backward pass may have stored partial sums for this layer's bias gradient.
        device.linear_backward(
            rows,
            branch_end,
            weights,
            &inputs,
            &d_branch,
            &mut d_inputs,
            gradients,
        );
        vec![
            ("normed", bench.read(&normed, size)),
            ("statistics", bench.read_floats(&statistics, 2 * rows)),
            ("d x", bench.read(&d_x, size)),
            ("d gain", bench.gradient(plain.gain)),
            ("d bias", bench.gradient(plain.bias)),
            ("sum", bench.read(&sum, size)),
            ("normed sum", bench.read(&sum_normed, size)),
            ("d sum", bench.read(&d_sum, size)),
            ("d branch", bench.read(&d_branch, size)),
            ("d gain of the residual", bench.gradient(residual.gain)),
            ("d bias of the residual", bench.gradient(residual.bias)),
            ("d bias of the branch", bench.gradient(branch_end.bias)),
        ]
    }
}

#[test]
fn norms_with_residual_and_dropout() {
    for (rows, width, probability) in [
        (41, 22, 0.25),
        (3, 1, 0.0),
        (1000, 512, 0.1),
        (100, 256, 0.1),
        (33, 1000, 0.0),
        (20, 1024, 0.5),
        (70, 1280, 0.1),
        (9, 2051, 0.1),
    ] {
        println!("{rows} rows of {width}");
        compare(&Norms { rows, width, probability });
    }
}
