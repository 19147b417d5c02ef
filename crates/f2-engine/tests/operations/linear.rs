//! Linear layers and GELU.

use f2_engine::prelude::*;
use f2_engine::{Layout, Linear};

use super::reference::{dot, gelu, linear, slope};
use super::{Bench, assert_close, random};

fn bench(inputs: usize, outputs: usize) -> (Bench, Linear) {
    let mut layout = Layout::new();
    let layer = Linear {
        weight: layout.add("weight", &[outputs, inputs], true),
        bias: layout.add("bias", &[outputs], false),
    };
    (Bench::new(&layout), layer)
}

#[test]
fn linear_and_its_gradients() {
    for (rows, inputs, outputs) in [(1, 1, 1), (13, 7, 5), (67, 19, 23), (5, 33, 70)] {
        let (mut bench, layer) = bench(inputs, outputs);
        let (x, d_y) = (random(rows * inputs, 1), random(rows * outputs, 2));
        let (weight, bias) = (bench.weight(layer.weight), bench.weight(layer.bias));
        let (x_buffer, d_buffer) = (bench.upload(&x), bench.upload(&d_y));

        let mut y = bench.cpu.activations(rows * outputs).unwrap();
        bench.cpu.linear(rows, layer, &bench.weights, &x_buffer, &mut y);
        assert_close(&y, &linear(&x, &weight, &bias, inputs), 1e-5);

        let mut d_x = bench.cpu.activations(rows * inputs).unwrap();
        // Twice: gradients of parameters accumulate, those of activations do not.
        for _ in 0..2 {
            bench.cpu.linear_backward(
                rows,
                layer,
                &bench.weights,
                &x_buffer,
                &d_buffer,
                &mut d_x,
                &mut bench.gradients,
            );
        }
        let twice = |slope: Vec<f64>| slope.iter().map(|slope| 2.0 * slope).collect::<Vec<_>>();
        assert_close(&d_x, &slope(&x, |x| dot(&linear(x, &weight, &bias, inputs), &d_y)), 1e-5);
        let by_weight = slope(&weight, |weight| dot(&linear(&x, weight, &bias, inputs), &d_y));
        assert_close(&bench.gradient(layer.weight), &twice(by_weight), 1e-5);
        let by_bias = slope(&bias, |bias| dot(&linear(&x, &weight, bias, inputs), &d_y));
        assert_close(&bench.gradient(layer.bias), &twice(by_bias), 1e-5);
    }
}

#[test]
fn gelu_after_a_linear_layer() {
    let (rows, inputs, outputs) = (11, 6, 35);
    let (bench, layer) = bench(inputs, outputs);
    let x = random(rows * inputs, 1);
    let expected = linear(&x, &bench.weight(layer.weight), &bench.weight(layer.bias), inputs);
    let [mut before, mut y] = [0; 2].map(|_| bench.cpu.activations(rows * outputs).unwrap());
    let x = bench.upload(&x);
    bench.cpu.linear_gelu(rows, layer, &bench.weights, &x, &mut before, &mut y);
    assert_close(&before, &expected, 1e-5);
    let expected: Vec<f64> = expected.iter().map(|&x| gelu(x)).collect();
    assert_close(&y, &expected, 1e-5);
}

#[test]
fn gradients_through_gelu_and_the_linear_layer_after_it() {
    let (rows, inputs, outputs) = (71, 21, 9);
    let (mut bench, layer) = bench(inputs, outputs);
    let (before, d_y) = (random(rows * inputs, 1), random(rows * outputs, 2));
    let (weight, bias) = (bench.weight(layer.weight), bench.weight(layer.bias));
    let activated = |before: &[f64]| before.iter().map(|&x| gelu(x)).collect::<Vec<_>>();
    let x = bench.upload(&activated(&before));
    let (before_buffer, d_buffer) = (bench.upload(&before), bench.upload(&d_y));
    let mut d_before = bench.cpu.activations(rows * inputs).unwrap();
    bench.cpu.linear_backward_gelu(
        rows,
        layer,
        &bench.weights,
        &before_buffer,
        &x,
        &d_buffer,
        &mut d_before,
        &mut bench.gradients,
    );
    let value = |before: &[f64], weight: &[f64], bias: &[f64]| {
        dot(&linear(&activated(before), weight, bias, inputs), &d_y)
    };
    assert_close(&d_before, &slope(&before, |before| value(before, &weight, &bias)), 1e-5);
    let by_weight = slope(&weight, |weight| value(&before, weight, &bias));
    assert_close(&bench.gradient(layer.weight), &by_weight, 1e-5);
    let by_bias = slope(&bias, |bias| value(&before, &weight, bias));
    assert_close(&bench.gradient(layer.bias), &by_bias, 1e-5);
}
