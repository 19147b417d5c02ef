//! Layer norm, residuals and dropout.

use f2_engine::prelude::*;
use f2_engine::{Dropout, Layout, Norm};

use super::reference::{dot, norm, slope};
use super::{Bench, assert_close, narrow, random};

fn bench(width: usize) -> (Bench, Norm) {
    let mut layout = Layout::new();
    let norm = Norm {
        gain: layout.add("gain", &[width], false),
        bias: layout.add("bias", &[width], false),
    };
    (Bench::new(&layout), norm)
}

#[test]
fn norm_and_its_gradients() {
    for (rows, width) in [(1, 3), (7, 37), (67, 19), (3, 130)] {
        let (mut bench, layer) = bench(width);
        let (x, d_normed, before) =
            (random(rows * width, 1), random(rows * width, 2), random(rows * width, 3));
        let (gain, bias) = (bench.weight(layer.gain), bench.weight(layer.bias));

        let mut normed = bench.cpu.activations(rows * width).unwrap();
        let mut statistics = bench.cpu.floats(rows * 2).unwrap();
        let x_buffer = bench.upload(&x);
        bench.cpu.norm(rows, layer, &bench.weights, &x_buffer, &mut normed, &mut statistics);
        assert_close(&normed, &norm(&x, &gain, &bias), 1e-5);

        let mut d_x = bench.upload(&before);
        let d_buffer = bench.upload(&d_normed);
        bench.cpu.norm_backward(
            rows,
            layer,
            &bench.weights,
            &x_buffer,
            &statistics,
            &d_buffer,
            &mut d_x,
            &mut bench.gradients,
        );
        let slope_x = slope(&x, |x| dot(&norm(x, &gain, &bias), &d_normed));
        let expected: Vec<f64> = slope_x.iter().zip(&before).map(|(a, b)| a + b).collect();
        assert_close(&d_x, &expected, 1e-5);
        let slope_gain = slope(&gain, |gain| dot(&norm(&x, gain, &bias), &d_normed));
        assert_close(&bench.gradient(layer.gain), &slope_gain, 1e-5);
        let slope_bias = slope(&bias, |bias| dot(&norm(&x, &gain, bias), &d_normed));
        assert_close(&bench.gradient(layer.bias), &slope_bias, 1e-5);
    }
}

/// The mask is taken from a residual with a branch of ones; all other results must agree with it.
#[test]
fn residual_with_dropout_and_its_gradients() {
    let (rows, width) = (41, 22);
    let (mut bench, layer) = bench(width);
    let clock = bench.clock;
    let dropout = Dropout { probability: 0.25, site: 7, clock: &clock };
    let size = rows * width;
    let (x, branch, d_normed, d_later) =
        (random(size, 1), random(size, 2), random(size, 3), random(size, 4));
    let run = |x: &[f64], branch: &[f64]| {
        let (x, branch) = (bench.upload(x), bench.upload(branch));
        let [mut sum, mut normed] = [0; 2].map(|_| bench.cpu.activations(size).unwrap());
        let mut statistics = bench.cpu.floats(rows * 2).unwrap();
        bench.cpu.residual_norm(
            rows,
            layer,
            &bench.weights,
            dropout,
            &x,
            &branch,
            &mut sum,
            &mut normed,
            &mut statistics,
        );
        (sum, normed, statistics)
    };
    let mask: Vec<f64> =
        run(&vec![0.0; size], &vec![1.0; size]).0.iter().map(|&x| f64::from(x)).collect();
    let kept = mask.iter().filter(|&&factor| factor > 0.0).count() as f64 / size as f64;
    assert!((kept - 0.75).abs() < 0.05);

    let (gain, bias) = (bench.weight(layer.gain), bench.weight(layer.bias));
    let sum_of = |x: &[f64], branch: &[f64]| -> Vec<f64> {
        (0..size).map(|i| x[i] + mask[i] * branch[i]).collect()
    };
    let (sum, normed, statistics) = run(&x, &branch);
    assert_close(&sum, &sum_of(&x, &branch), 1e-6);
    assert_close(&normed, &norm(&sum_of(&x, &branch), &gain, &bias), 1e-5);

    let mut d_sum = bench.upload(&d_later);
    let mut d_branch = bench.cpu.activations(size).unwrap();
    let d_buffer = bench.upload(&d_normed);
    bench.cpu.residual_norm_backward(
        rows,
        layer,
        &bench.weights,
        dropout,
        &sum,
        &statistics,
        &d_buffer,
        &mut d_sum,
        &mut d_branch,
        &mut bench.gradients,
    );
    let value = |x: &[f64], branch: &[f64]| {
        let sum = sum_of(x, branch);
        dot(&norm(&sum, &gain, &bias), &d_normed) + dot(&sum, &d_later)
    };
    assert_close(&d_sum, &slope(&x, |x| value(x, &branch)), 1e-5);
    assert_close(&d_branch, &slope(&branch, |branch| value(&x, branch)), 1e-5);
}

#[test]
fn masks_do_not_depend_on_how_a_batch_is_split() {
    let (rows, width) = (10, 12);
    let (bench, layer) = bench(width);
    let run = |first: usize, count: usize| {
        let mut clock = bench.clock;
        clock.first_position = first as u64;
        let dropout = Dropout { probability: 0.5, site: 0, clock: &clock };
        let zero = bench.upload(&vec![0.0; count * width]);
        let ones = bench.upload(&vec![1.0; count * width]);
        let [mut sum, mut normed] = [0; 2].map(|_| bench.cpu.activations(count * width).unwrap());
        let mut statistics = bench.cpu.floats(count * 2).unwrap();
        bench.cpu.residual_norm(
            count,
            layer,
            &bench.weights,
            dropout,
            &zero,
            &ones,
            &mut sum,
            &mut normed,
            &mut statistics,
        );
        sum.to_vec()
    };
    let whole = run(0, rows);
    let split = [run(0, 3), run(3, 6), run(9, 1)].concat();
    assert_eq!(whole, split);
    assert_ne!(narrow(&vec![0.0; rows * width]), whole);
}
