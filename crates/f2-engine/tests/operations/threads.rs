//! The number of threads does not change results, not even the last bit.

use f2_engine::prelude::*;
use f2_engine::{
    AttentionHeads, Classes, Cpu, Dropout, Head, Labels, Layout, Linear, Norm, Sequences,
};

use super::{Bench, random};

const SEQUENCES: Sequences = Sequences { count: 3, length: 47 };
const HEADS: AttentionHeads = AttentionHeads { count: 2, width: 12 };
const WIDTH: usize = 24;
const VOCABULARY: usize = 311;

/// Runs one operation of each kind, forward and backward. Returns the losses, the gradients and
/// their norm.
pub(super) fn outcome(cpu: Cpu) -> Vec<f32> {
    let mut layout = Layout::new();
    let linear = Linear {
        weight: layout.add("weight", &[3 * WIDTH, WIDTH], true),
        bias: layout.add("bias", &[3 * WIDTH], false),
    };
    let norm = Norm {
        gain: layout.add("gain", &[WIDTH], false),
        bias: layout.add("norm bias", &[WIDTH], false),
    };
    let vectors = layout.add("classes", &[3, WIDTH], true);
    let head = Head {
        tokens: layout.add("tokens", &[VOCABULARY, WIDTH], true),
        classes: Some(Classes { vectors, ends: vec![2, 40, VOCABULARY as u32] }),
    };
    let mut bench = Bench::new(&layout);
    bench.cpu = cpu;
    let (cpu, weights, gradients) = (&bench.cpu, &bench.weights, &mut bench.gradients);
    let rows = SEQUENCES.positions();
    let buffer = |columns: usize, seed: u32| {
        let mut buffer = cpu.activations(rows * columns).unwrap();
        cpu.write_activations(&super::narrow(&random(rows * columns, seed)), &mut buffer);
        buffer
    };
    let (x, mut qkv, mut attended) = (buffer(WIDTH, 1), buffer(3 * WIDTH, 2), buffer(WIDTH, 3));
    let (mut log_sums, mut d_qkv) = (buffer(HEADS.count, 4), buffer(3 * WIDTH, 5));
    let [mut sum, mut normed, mut d_x, mut d_normed, mut d_branch] =
        [6, 7, 8, 9, 10].map(|seed| buffer(WIDTH, seed));
    let (mut statistics, mut losses) = (buffer(2, 11), buffer(2, 12));
    let dropout = Dropout { probability: 0.1, site: 1, clock: &bench.clock };

    cpu.linear(rows, linear, weights, &x, &mut qkv);
    cpu.attention(SEQUENCES, HEADS, &qkv, &mut attended, &mut log_sums);
    cpu.residual_norm(
        rows,
        norm,
        weights,
        dropout,
        &x,
        &attended,
        &mut sum,
        &mut normed,
        &mut statistics,
    );
    let ids: Vec<u32> = (0..rows as u32).map(|i| i * i * 7 % VOCABULARY as u32).collect();
    let mut targets = cpu.targets(rows, &head).unwrap();
    cpu.load_targets(&head, &Labels::uniform(&ids, 0.01), &mut targets);
    cpu.loss_backward(&head, weights, &mut targets, &normed, &mut losses, &mut d_normed, gradients);
    cpu.residual_norm_backward(
        rows,
        norm,
        weights,
        dropout,
        &sum,
        &statistics,
        &d_normed,
        &mut d_x,
        &mut d_branch,
        gradients,
    );
    cpu.attention_backward(SEQUENCES, HEADS, &qkv, &attended, &log_sums, &d_branch, &mut d_qkv);
    cpu.linear_backward(rows, linear, weights, &x, &d_qkv, &mut d_x, gradients);
    let mut norm_of_all = cpu.floats(1).unwrap();
    cpu.global_norm(gradients, &mut norm_of_all);
    [&losses[..], &d_x, gradients, &norm_of_all].concat()
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads: usize| outcome(Cpu::new(threads).unwrap());
    let expected = on(1);
    assert!(expected.iter().all(|value| value.is_finite()));
    assert_eq!(on(2), expected);
    assert_eq!(on(5), expected);
}
