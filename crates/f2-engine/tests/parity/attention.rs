//! Causal attention and its gradients.

use f2_engine::{AttentionHeads, Device, Layout, Linear, Sequences};

use super::{Bench, Outcome, Scenario, compare, is_emulated};

/// The width of the input of the layer that computes queries, keys and values.
const INPUTS: usize = 8;

struct Attention {
    sequences: Sequences,
    heads: AttentionHeads,
}

impl Attention {
    fn parts(&self) -> (Layout, Linear) {
        let (mut layout, outputs) = (Layout::new(), 3 * self.heads.total_width());
        let qkv = Linear {
            weight: layout.add("weight", &[outputs, INPUTS], true),
            bias: layout.add("bias", &[outputs], false),
        };
        (layout, qkv)
    }
}

impl Scenario for Attention {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let Self { sequences, heads } = *self;
        let (positions, width) = (sequences.positions(), heads.total_width());
        let (qkv, d_out) =
            (bench.input(positions * 3 * width, 1), bench.input(positions * width, 2));
        let mut out = bench.output(positions * width);
        let mut log_sums = bench.floats(positions * heads.count);
        let mut d_qkv = bench.output(positions * 3 * width);
        let layer = self.parts().1;
        let (x, mut d_x) = (bench.input(positions * INPUTS, 3), bench.output(positions * INPUTS));
        let Bench { device, weights, gradients, .. } = bench;
        device.attention(sequences, heads, &qkv, &mut out, &mut log_sums);
        device.attention_backward(sequences, heads, &qkv, &out, &log_sums, &d_out, &mut d_qkv);
        // The attention backward pass may have stored partial sums for this layer's bias gradient.
        device.linear_backward(positions, layer, weights, &x, &d_qkv, &mut d_x, gradients);
        let d_qkv = bench.read(&d_qkv, positions * 3 * width);
        let part = |part: usize| -> Vec<f32> {
            d_qkv.chunks(width).skip(part).step_by(3).flatten().copied().collect()
        };
        vec![
            ("attended", bench.read(&out, positions * width)),
            ("log sums", bench.read_floats(&log_sums, positions * heads.count)),
            ("d queries", part(0)),
            ("d keys", part(1)),
            ("d values", part(2)),
            ("d bias", bench.gradient(layer.bias)),
        ]
    }
}

fn check(count: usize, length: usize, heads: usize, width: usize) {
    println!("{count} × {length}, {heads} heads of {width}");
    compare(&Attention {
        sequences: Sequences { count, length },
        heads: AttentionHeads { count: heads, width },
    });
}

#[test]
fn heads_of_64() {
    for (count, length, heads) in
        [(1, 64, 1), (1, 65, 1), (3, 100, 2), (1, 1, 2), (2, 130, 3), (2, 1024, 8)]
    {
        if length > 1000 && is_emulated() {
            println!("skipped: the emulator is too slow for {count} × {length} positions");
            continue;
        }
        check(count, length, heads, 64);
    }
}

#[test]
fn heads_of_any_width() {
    for (count, length, heads, width) in
        [(1, 1, 1, 2), (2, 13, 3, 5), (2, 70, 2, 32), (1, 130, 1, 128)]
    {
        check(count, length, heads, width);
    }
}
