//! Linear layers and GELU.

use f2_engine::{Device, Layout, Linear};

use super::{Bench, Outcome, Scenario, compare};

struct Layers {
    rows: usize,
    inputs: usize,
    outputs: usize,
}

impl Layers {
    fn parts(&self) -> (Layout, Linear, Linear) {
        let mut layout = Layout::new();
        let mut add = |name: &str, inputs: usize, outputs: usize| Linear {
            weight: layout.add(format!("{name} weight"), &[outputs, inputs], true),
            bias: layout.add(format!("{name} bias"), &[outputs], false),
        };
        let first = add("first", self.inputs, self.outputs);
        let second = add("second", self.outputs, self.inputs);
        (layout, first, second)
    }
}

impl Scenario for Layers {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, first, second) = self.parts();
        let Self { rows, inputs, outputs } = *self;
        let (narrow, wide) = (rows * inputs, rows * outputs);
        let (x, d_wide, d_narrow) =
            (bench.input(narrow, 1), bench.input(wide, 2), bench.input(narrow, 3));
        let (given_before, given_y) = (bench.input(wide, 4), bench.input(wide, 5));
        let [mut y, mut before, mut after, mut d_before] = [0; 4].map(|_| bench.output(wide));
        let [mut d_x, mut d_x_before] = [0; 2].map(|_| bench.output(narrow));
        let Bench { device, weights, gradients, .. } = bench;
        device.linear(rows, first, weights, &x, &mut y);
        device.linear_gelu(rows, first, weights, &x, &mut before, &mut after);
        // Twice: gradients of parameters accumulate, those of activations do not.
        for _ in 0..2 {
            device.linear_backward(rows, first, weights, &x, &d_wide, &mut d_x, gradients);
        }
        device.linear_backward_gelu(
            rows,
            second,
            weights,
            &given_before,
            &given_y,
            &d_narrow,
            &mut d_before,
            gradients,
        );
        // The pass before may have summed the columns.
        device.linear_backward(rows, first, weights, &x, &d_before, &mut d_x_before, gradients);
        vec![
            ("linear", bench.read(&y, wide)),
            ("before gelu", bench.read(&before, wide)),
            ("after gelu", bench.read(&after, wide)),
            ("d x", bench.read(&d_x, narrow)),
            ("d x before gelu", bench.read(&d_x_before, narrow)),
            ("d weight", bench.gradient(first.weight)),
            ("d bias", bench.gradient(first.bias)),
            ("d before gelu", bench.read(&d_before, wide)),
            ("d weight after gelu", bench.gradient(second.weight)),
            ("d bias after gelu", bench.gradient(second.bias)),
        ]
    }
}

#[test]
fn linear_layers_and_their_gradients() {
    let shapes =
        [(1, 1, 1), (13, 7, 5), (67, 19, 23), (1, 64, 128), (100, 72, 40), (1024, 512, 2048)];
    // Several tiles per block of a kernel that has GELU in the product, and sums that are not a
    // multiple of its stages.
    let fused = [(1664, 192, 2048), (2112, 64, 128)];
    for (rows, inputs, outputs) in shapes.into_iter().chain(fused) {
        println!("{rows} rows, {inputs} to {outputs}");
        compare(&Layers { rows, inputs, outputs });
    }
}
