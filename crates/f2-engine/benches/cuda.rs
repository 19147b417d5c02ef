//! Benchmarks of every operation of a training step of the paper's model on a GPU, compared with
//! the floor: the least time for its arithmetic or its memory traffic.
//!
//! `cargo bench -p f2-engine --bench cuda -- [batch]` on a machine with an NVIDIA GPU.

use std::time::Instant;

use f2_engine::prelude::*;
use f2_engine::{
    AdamW, AttentionHeads, Bf16, Classes, Cuda, Decay, Device, Dropout, Embedding, Head, Labels,
    Layout, Linear, Moment, Moments, Norm, Sequences, cuda_is_present,
};

type Gpu = Cuda<Bf16>;

const WIDTH: usize = 512;
const INNER: usize = 2048;
const VOCABULARY: usize = 30_000;
const LAYERS: usize = 12;
const LENGTH: usize = 1024;
/// Operations recorded into one graph, and how often the graph is replayed.
const REPEATS: usize = 20;
const ROUNDS: usize = 5;

/// The minimum work of an operation.
#[derive(Clone, Copy)]
struct Floor {
    operations: f64,
    bytes: f64,
}

struct Bench {
    gpu: Gpu,
    /// Operations per second of a large product, and bytes per second of a large copy.
    peak: f64,
    bandwidth: f64,
}

impl Bench {
    /// Times `run`, which is called `times` times per step; prints a line and returns milliseconds
    /// per step.
    fn time(&self, name: &str, times: usize, floor: Floor, mut run: impl FnMut()) -> f64 {
        let mut recording = <Gpu as Device>::Recording::default();
        let mut body = || (0..REPEATS).for_each(|_| run());
        for _ in 0..3 {
            self.gpu.replay(&mut recording, &mut body);
        }
        self.gpu.synchronise().unwrap();
        let began = Instant::now();
        for _ in 0..ROUNDS {
            self.gpu.replay(&mut recording, &mut body);
        }
        self.gpu.synchronise().unwrap();
        self.report(name, times, floor, began.elapsed().as_secs_f64() / (ROUNDS * REPEATS) as f64)
    }

    /// [`Self::time`] without a graph, for operations whose shapes change with every batch.
    fn time_plainly(&self, name: &str, floor: Floor, mut run: impl FnMut()) -> f64 {
        run();
        self.gpu.synchronise().unwrap();
        let began = Instant::now();
        (0..REPEATS).for_each(|_| run());
        self.gpu.synchronise().unwrap();
        self.report(name, 1, floor, began.elapsed().as_secs_f64() / REPEATS as f64)
    }

    fn report(&self, name: &str, times: usize, floor: Floor, seconds: f64) -> f64 {
        let least = (floor.operations / self.peak).max(floor.bytes / self.bandwidth);
        println!(
            "| {name} | {times} | {:.1} | {:.1} | {:.0} % |",
            1e6 * seconds,
            1e6 * least,
            100.0 * least / seconds
        );
        1e3 * seconds * times as f64
    }
}

/// The floor of a pass over this many bf16 and `f32` values.
fn moving(halves: usize, floats: usize) -> Floor {
    Floor { operations: 0.0, bytes: 2.0 * halves as f64 + 4.0 * floats as f64 }
}

fn computing(operations: f64) -> Floor {
    Floor { operations, bytes: 0.0 }
}

fn bandwidth(gpu: &Gpu) -> f64 {
    let floats = 1 << 28;
    let (from, mut to) = (gpu.floats(floats).unwrap(), gpu.floats(1).unwrap());
    gpu.global_norm(&from, &mut to);
    gpu.synchronise().unwrap();
    let began = Instant::now();
    (0..10).for_each(|_| gpu.global_norm(&from, &mut to));
    gpu.synchronise().unwrap();
    10.0 * 4.0 * floats as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let batch = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(8);
    if let Err(reason) = cuda_is_present() {
        println!("skipped: {reason}");
        return;
    }
    let gpu = Gpu::new(0).unwrap();
    let (peak, bandwidth) = (gpu.measured_peak(), bandwidth(&gpu));
    println!(
        "{}: {:.0} TFLOP/s in a large product, {:.2} TB/s read\n",
        gpu.model().unwrap(),
        peak / 1e12,
        bandwidth / 1e12
    );
    println!("| operation | times a step | µs | floor, µs | of the floor |\n|---|--:|--:|--:|--:|");
    let bench = Bench { gpu, peak, bandwidth };
    let sequences = Sequences { count: batch, length: LENGTH };
    let total = trunk(&bench, sequences) + heads(&bench, sequences.positions());
    println!("\nF² head and trunk together, with the optimiser: {total:.2} ms");
}

/// Draws from a normal distribution, repeated with a prime period.
fn draws(len: usize, deviation: f64) -> Vec<f32> {
    let mut stream = f2_engine::Philox::new(1, [len as u32, 0, 0]);
    let draws: Vec<f32> = (0..65_537).map(|_| (stream.normal() * deviation) as f32).collect();
    draws.iter().copied().cycle().take(len).collect()
}

/// Initial weights, since products of zeros would run faster.
fn starting_weights(gpu: &Gpu, layout: &Layout) -> <Gpu as f2_engine::Memory>::Weights {
    let mut weights = gpu.weights(layout.len()).unwrap();
    for named in layout.parameters() {
        gpu.write_weights(&draws(named.parameter.len(), 0.02), named.parameter, &mut weights);
    }
    weights
}

fn random(gpu: &Gpu, len: usize) -> <Gpu as f2_engine::Memory>::Activations {
    let values = draws(len, 0.5);
    let mut buffer = gpu.activations(len).unwrap();
    gpu.write_activations(&values, &mut buffer);
    buffer
}

fn trunk(bench: &Bench, sequences: Sequences) -> f64 {
    let gpu = &bench.gpu;
    let rows = sequences.positions();
    let heads = AttentionHeads { count: WIDTH / 64, width: 64 };
    let mut layout = Layout::new();
    let mut linear = |inputs: usize, outputs: usize| Linear {
        weight: layout.add("weight", &[outputs, inputs], true),
        bias: layout.add("bias", &[outputs], false),
    };
    let (qkv_layer, out_layer) = (linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH));
    let (expand, contract) = (linear(WIDTH, INNER), linear(INNER, WIDTH));
    let norm = Norm {
        gain: layout.add("gain", &[WIDTH], false),
        bias: layout.add("bias", &[WIDTH], false),
    };
    let embedding = Embedding {
        tokens: layout.add("tokens", &[VOCABULARY, WIDTH], true),
        positions: layout.add("positions", &[LENGTH, WIDTH], true),
    };
    let weights = starting_weights(gpu, &layout);
    let mut gradients = gpu.floats(layout.len()).unwrap();
    let mut clock = gpu.clock().unwrap();
    gpu.set_clock(Moment { seed: 1, step: 1, first_position: 0 }, &mut clock);
    let dropout = Dropout { probability: 0.1, site: 1, clock: &clock };
    let [x, branch, d_y] = [0; 3].map(|_| random(gpu, rows * WIDTH));
    let [mut sum, mut normed, mut d_x, mut d_branch] = [0; 4].map(|_| random(gpu, rows * WIDTH));
    let [qkv, d_qkv_in] = [0; 2].map(|_| random(gpu, rows * 3 * WIDTH));
    let [mut d_qkv, mut qkv_out] = [0; 2].map(|_| random(gpu, rows * 3 * WIDTH));
    let [wide, before] = [0; 2].map(|_| random(gpu, rows * INNER));
    let [mut wide_out, mut before_out] = [0; 2].map(|_| random(gpu, rows * INNER));
    let mut statistics = gpu.floats(rows * 2).unwrap();
    let mut log_sums = gpu.floats(rows * heads.count).unwrap();
    let ids = zipf(rows);
    let mut tokens = gpu.tokens(rows).unwrap();
    gpu.load_tokens(&ids, &mut tokens);
    let product = |inputs: usize, outputs: usize| 2.0 * (rows * inputs * outputs) as f64;
    let attended = 4.0 * (rows * LENGTH * WIDTH) as f64 / 2.0;
    let (w, g) = (&weights, &mut gradients);

    let mut total = 0.0;
    let floor = moving(rows * WIDTH, 2 * rows * WIDTH);
    total += bench.time("embed", 1, floor, || {
        gpu.embed(sequences, embedding, w, &tokens, dropout, &mut sum);
    });
    total += bench.time("embed backward", 1, moving(2 * rows * WIDTH, 2 * rows * WIDTH), || {
        gpu.embed_backward(sequences, embedding, &tokens, dropout, &d_y, g);
    });
    total += bench.time("residual, dropout, norm", 2 * LAYERS, moving(4 * rows * WIDTH, 0), || {
        gpu.residual_norm(
            rows,
            norm,
            w,
            dropout,
            &x,
            &branch,
            &mut sum,
            &mut normed,
            &mut statistics,
        );
    });
    let floor = moving(5 * rows * WIDTH, 0);
    total += bench.time("residual, dropout, norm backward", 2 * LAYERS, floor, || {
        let from = (&x, &statistics, &d_y);
        let to = (&mut d_x, &mut d_branch);
        gpu.residual_norm_backward(rows, norm, w, dropout, from.0, from.1, from.2, to.0, to.1, g);
    });
    let floor = computing(product(WIDTH, 3 * WIDTH));
    total += bench.time("queries, keys, values", LAYERS, floor, || {
        gpu.linear(rows, qkv_layer, w, &x, &mut qkv_out);
    });
    total += bench.time("attention", LAYERS, computing(attended), || {
        gpu.attention(sequences, heads, &qkv, &mut normed, &mut log_sums);
    });
    total += bench.time("attention backward", LAYERS, computing(2.5 * attended), || {
        let from = (&qkv, &x, &log_sums, &d_y);
        gpu.attention_backward(sequences, heads, from.0, from.1, from.2, from.3, &mut d_qkv);
    });
    total += bench.time("attention out", LAYERS, computing(product(WIDTH, WIDTH)), || {
        gpu.linear(rows, out_layer, w, &x, &mut sum);
    });
    total += bench.time("expand, GELU", LAYERS, computing(product(WIDTH, INNER)), || {
        gpu.linear_gelu(rows, expand, w, &x, &mut before_out, &mut wide_out);
    });
    total += bench.time("contract", LAYERS, computing(product(WIDTH, INNER)), || {
        gpu.linear(rows, contract, w, &wide, &mut sum);
    });
    let floor = computing(2.0 * product(WIDTH, 3 * WIDTH));
    total += bench.time("queries, keys, values backward", LAYERS, floor, || {
        gpu.linear_backward(rows, qkv_layer, w, &x, &d_qkv_in, &mut d_x, g);
    });
    let floor = computing(2.0 * product(WIDTH, WIDTH));
    total += bench.time("attention out backward", LAYERS, floor, || {
        gpu.linear_backward(rows, out_layer, w, &x, &d_y, &mut d_x, g);
    });
    let floor = computing(2.0 * product(WIDTH, INNER));
    total += bench.time("contract, GELU backward", LAYERS, floor, || {
        gpu.linear_backward_gelu(rows, contract, w, &before, &wide, &d_y, &mut wide_out, g);
    });
    total += bench.time("expand backward", LAYERS, floor, || {
        gpu.linear_backward(rows, expand, w, &x, &wide, &mut d_x, g);
    });
    total
}

fn heads(bench: &Bench, positions: usize) -> f64 {
    let gpu = &bench.gpu;
    let mut layout = Layout::new();
    // The trunk's parameters, so that the optimiser updates as many as in the paper.
    layout.add("trunk", &[LAYERS * 3_152_384 / WIDTH + VOCABULARY + LENGTH, WIDTH], true);
    let tokens = layout.add("tokens", &[VOCABULARY, WIDTH], true);
    let ends = equal_mass(8);
    let classes = layout.add("classes", &[ends.len(), WIDTH], true);
    let classes = Classes { vectors: classes, ends };
    let mut weights = starting_weights(gpu, &layout);
    let mut gradients = gpu.floats(layout.len()).unwrap();
    let mut moments = Moments::<Gpu> {
        first: gpu.floats(layout.len()).unwrap(),
        second: gpu.floats(layout.len()).unwrap(),
    };
    let (hidden, mut d_hidden) = (random(gpu, positions * WIDTH), random(gpu, positions * WIDTH));
    let (mut losses, mut norm) = (gpu.floats(2 * positions).unwrap(), gpu.floats(1).unwrap());
    let ids = zipf(positions);
    let members = |id: &u32| classes.members(classes.class_of(*id)).len();
    let outputs: f64 = ids.iter().map(|id| members(id) as f64).sum();
    let (plain, head) = (Head::plain(tokens), Head { tokens, classes: Some(classes) });
    let mut targets = gpu.targets(positions, &head).unwrap();
    let labels = Labels::uniform(&ids, 1e-4);

    let mut total = 0.0;
    gpu.load_targets(&head, &labels, &mut targets);
    let floor = computing(6.0 * outputs * WIDTH as f64);
    total += bench.time("F² head, loss and gradients", 1, floor, || {
        let to = (&mut losses, &mut d_hidden, &mut gradients);
        gpu.loss_backward(&head, &weights, &mut targets, &hidden, to.0, to.1, to.2);
    });
    bench.time_plainly("the same, each launched by the host", floor, || {
        let to = (&mut losses, &mut d_hidden, &mut gradients);
        gpu.loss_backward(&head, &weights, &mut targets, &hidden, to.0, to.1, to.2);
    });
    let began = Instant::now();
    (0..REPEATS).for_each(|_| gpu.load_targets(&head, &labels, &mut targets));
    println!(
        "| targets grouped by the host | 1 | {:.1} | | |",
        1e6 * began.elapsed().as_secs_f64() / REPEATS as f64
    );
    gpu.load_targets(&plain, &labels, &mut targets);
    let floor = computing(6.0 * (positions * VOCABULARY * WIDTH) as f64);
    bench.time("plain head, loss and gradients", 1, floor, || {
        let to = (&mut losses, &mut d_hidden, &mut gradients);
        gpu.loss_backward(&plain, &weights, &mut targets, &hidden, to.0, to.1, to.2);
    });
    total += bench.time_plainly("global norm", moving(0, layout.len()), || {
        gpu.global_norm(&gradients, &mut norm);
    });
    let settings = AdamW {
        learning_rate: 1e-4,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.001,
        decay: Decay::Decoupled,
        clip: 0.25,
        update: 1,
    };
    total += bench.time_plainly("AdamW", moving(layout.len(), 8 * layout.len()), || {
        gpu.adamw(settings, &layout.decayed(), &norm, &mut weights, &mut moments, &mut gradients);
    });
    total
}

fn masses() -> Vec<f64> {
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=VOCABULARY)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    cumulative.iter().map(|mass| mass / sum).collect()
}

/// Tokens drawn from Zipf's distribution.
fn zipf(count: usize) -> Vec<u32> {
    let masses = masses();
    let mut random = f2_engine::Philox::new(3, [0; 3]);
    let mut draw = || {
        let point = random.uniform();
        masses.partition_point(|&mass| mass < point).min(VOCABULARY - 1) as u32
    };
    (0..count).map(|_| draw()).collect()
}

/// Classes of equal mass under Zipf's distribution.
fn equal_mass(classes: usize) -> Vec<u32> {
    let masses = masses();
    let end = |class: usize| {
        let target = class as f64 / classes as f64;
        (masses.partition_point(|&mass| mass < target) + 1).min(VOCABULARY) as u32
    };
    (1..=classes).map(end).collect()
}
