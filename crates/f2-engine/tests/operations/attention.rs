//! Causal attention and its gradients.

use f2_engine::prelude::*;
use f2_engine::{AttentionHeads, Layout, Sequences};

use super::reference::{attention, dot, slope};
use super::{Bench, assert_close, random};

#[test]
fn attention_and_its_gradient() {
    for (count, length, heads, width) in
        [(1, 1, 1, 1), (2, 13, 3, 5), (3, 7, 2, 16), (1, 71, 1, 9), (2, 66, 1, 4)]
    {
        let bench = Bench::new(&Layout::new());
        let total = heads * width;
        let positions = count * length;
        let (qkv, d_out) = (random(positions * 3 * total, 1), random(positions * total, 2));
        let (sequences, shape) =
            (Sequences { count, length }, AttentionHeads { count: heads, width });
        let mut out = bench.cpu.activations(positions * total).unwrap();
        let mut log_sums = bench.cpu.floats(positions * heads).unwrap();
        let qkv_buffer = bench.upload(&qkv);
        bench.cpu.attention(sequences, shape, &qkv_buffer, &mut out, &mut log_sums);
        assert_close(&out, &attention(&qkv, count, length, heads, width), 1e-5);

        let mut d_qkv = bench.cpu.activations(positions * 3 * total).unwrap();
        let d_buffer = bench.upload(&d_out);
        bench.cpu.attention_backward(
            sequences,
            shape,
            &qkv_buffer,
            &out,
            &log_sums,
            &d_buffer,
            &mut d_qkv,
        );
        let expected = slope(&qkv, |qkv| dot(&attention(qkv, count, length, heads, width), &d_out));
        assert_close(&d_qkv, &expected, 1e-5);
    }
}

/// Long enough for many strips. Forward only, since differences would take too long.
#[test]
fn long_sequences() {
    let (length, width) = (517, 64);
    let bench = Bench::new(&Layout::new());
    let qkv = random(length * 3 * width, 1);
    let mut out = bench.cpu.activations(length * width).unwrap();
    let mut log_sums = bench.cpu.floats(length).unwrap();
    let buffer = bench.upload(&qkv);
    let (sequences, heads) = (Sequences { count: 1, length }, AttentionHeads { count: 1, width });
    bench.cpu.attention(sequences, heads, &buffer, &mut out, &mut log_sums);
    assert_close(&out, &attention(&qkv, 1, length, 1, width), 1e-5);
}
