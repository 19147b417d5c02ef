//! Benchmarks of every operation at the sizes of the CPU benchmark, relative to the peak.
//!
//! `cargo bench -p f2-engine --bench operations -- [threads] [name]` prints the best and the median
//! time, GFLOP/s of matrix products or GB/s of memory passes, and the fraction of the peak measured
//! in the same run: multiply-adds in registers for the former, copying a large buffer for the
//! latter. The argument `bf16` selects products in bf16. With the argument `processor`, time is the
//! CPU time of the process divided by the number of threads, which excludes waiting on a busy
//! machine.

use std::hint::black_box;
use std::time::Instant;

use f2_engine::prelude::*;
use f2_engine::{
    AdamW, AttentionHeads, Classes, Cpu, Decay, Dropout, Embedding, Head, Labels, Layout, Linear,
    Moments, Norm, Philox, Sequences,
};

const SEQUENCES: Sequences = Sequences { count: 8, length: 256 };
const WIDTH: usize = 256;
const HEADS: AttentionHeads = AttentionHeads { count: 4, width: 64 };
const VOCABULARY: usize = 30_000;
const CLASSES: usize = 10;

type Buffer = <Cpu as f2_engine::Memory>::Floats;

/// The work of an operation, for its speed.
enum Work {
    Flops(f64),
    Bytes(f64),
}

struct Bench {
    cpu: Cpu,
    peak_flops: f64,
    peak_bytes: f64,
    wanted: Option<String>,
    clock: Clock,
}

/// Measures wall time or processor time.
#[derive(Clone, Copy)]
enum Clock {
    Wall(Instant),
    Processor { threads: usize },
}

impl Clock {
    fn seconds(self) -> f64 {
        match self {
            Self::Wall(start) => start.elapsed().as_secs_f64(),
            Self::Processor { threads } => {
                let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                // SAFETY: the clock exists on all supported systems; the call writes `time`.
                unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
                (time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9) / threads as f64
            }
        }
    }
}

impl Bench {
    fn new() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
        let threads = arguments.iter().find_map(|a| a.parse().ok()).unwrap_or(0);
        let by_processor = arguments.iter().any(|a| a == "processor");
        let bf16 = arguments.iter().any(|a| a == "bf16");
        let word = |a: &str| a == "processor" || a == "bf16" || a.parse::<usize>().is_ok();
        let wanted = arguments.into_iter().find(|a| !word(a));
        let cpu = if bf16 { Cpu::with_bf16(threads) } else { Cpu::new(threads) };
        let cpu = cpu.expect("the CPU device can be created");
        let peak_flops = cpu.measured_peak();
        let peak_bytes = copy_speed(cpu.threads());
        println!(
            "{} threads, peak {:.0} GFLOP/s, copying {:.1} GB/s",
            cpu.threads(),
            peak_flops / 1e9,
            peak_bytes / 1e9
        );
        let clock = if by_processor {
            Clock::Processor { threads: cpu.threads() }
        } else {
            Clock::Wall(Instant::now())
        };
        Self { cpu, peak_flops, peak_bytes, wanted, clock }
    }

    fn run(&self, name: &str, work: &Work, mut operation: impl FnMut(&Cpu)) {
        if self.wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            return;
        }
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < 5 || (start.elapsed().as_secs_f64() < 0.4 && times.len() < 200) {
            let start = self.clock.seconds();
            operation(&self.cpu);
            times.push(self.clock.seconds() - start);
        }
        times.sort_unstable_by(f64::total_cmp);
        let (best, median) = (times[0], times[times.len() / 2]);
        let (speed, unit, share) = match work {
            Work::Flops(flops) => (flops / best, "GFLOP/s", flops / best / self.peak_flops),
            Work::Bytes(bytes) => (bytes / best, "GB/s", bytes / best / self.peak_bytes),
        };
        println!(
            "{name:32} {:9.3} ms (median {:9.3})  {:7.1} {unit:8} {:5.1} % of peak",
            best * 1e3,
            median * 1e3,
            speed / 1e9,
            share * 100.0
        );
    }
}

/// Bytes read and written per second by all threads when copying buffers larger than the caches.
fn copy_speed(threads: usize) -> f64 {
    let len = 16 << 20;
    let device = Cpu::new(1).expect("a thread can be started");
    let buffer = || device.floats(len).expect("there is memory");
    let mut buffers: Vec<_> = (0..threads).map(|_| (buffer(), buffer())).collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (from, to) in &mut buffers {
                scope.spawn(|| black_box(to).copy_from_slice(black_box(from)));
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    (threads * len * 8) as f64 / best
}

fn noise(bench: &Bench, len: usize) -> Buffer {
    let mut buffer = bench.cpu.floats(len).expect("there is memory");
    // Multiples of the golden ratio: evenly distributed, and cheap to compute by the million.
    for (i, x) in buffer.iter_mut().enumerate() {
        *x = (i as f32 * 0.618_034).fract() - 0.5;
    }
    buffer
}

fn main() {
    let bench = Bench::new();
    linear_layers(&bench);
    attention(&bench);
    norms(&bench);
    embedding(&bench);
    for vocabulary in [8_000, VOCABULARY] {
        heads(&bench, vocabulary);
    }
    optimiser(&bench);
    decoding(&bench);
}

fn linear_layers(bench: &Bench) {
    let rows = SEQUENCES.positions();
    for (name, inputs, outputs) in
        [("qkv", WIDTH, 3 * WIDTH), ("projection", WIDTH, WIDTH), ("ff2", 4 * WIDTH, WIDTH)]
    {
        let (layer, weights, mut gradients) = linear_layer(bench, inputs, outputs);
        let (x, mut y) = (noise(bench, rows * inputs), noise(bench, rows * outputs));
        let flops = 2.0 * (rows * inputs * outputs) as f64;
        bench.run(&format!("linear {name}"), &Work::Flops(flops), |cpu| {
            cpu.linear(rows, layer, &weights, &x, &mut y);
        });
        let mut d_x = noise(bench, rows * inputs);
        bench.run(&format!("linear_backward {name}"), &Work::Flops(2.0 * flops), |cpu| {
            cpu.linear_backward(rows, layer, &weights, &x, &y, &mut d_x, &mut gradients);
        });
        if name == "ff2" {
            let before = noise(bench, rows * inputs);
            bench.run("linear_backward_gelu ff2", &Work::Flops(2.0 * flops), |cpu| {
                cpu.linear_backward_gelu(
                    rows,
                    layer,
                    &weights,
                    &before,
                    &x,
                    &y,
                    &mut d_x,
                    &mut gradients,
                );
            });
        }
    }
    let (layer, weights, mut gradients) = linear_layer(bench, WIDTH, 4 * WIDTH);
    let mut x = noise(bench, rows * WIDTH);
    let [mut before, mut y] = [0; 2].map(|_| noise(bench, rows * 4 * WIDTH));
    let flops = 2.0 * (rows * WIDTH * 4 * WIDTH) as f64;
    bench.run("linear_gelu ff1", &Work::Flops(flops), |cpu| {
        cpu.linear_gelu(rows, layer, &weights, &x, &mut before, &mut y);
    });
    let input = noise(bench, rows * WIDTH);
    bench.run("linear_backward ff1", &Work::Flops(2.0 * flops), |cpu| {
        cpu.linear_backward(rows, layer, &weights, &input, &y, &mut x, &mut gradients);
    });
}

/// One token for each of 16 prompts: the time is that of reading the weights.
fn decoding(bench: &Bench) {
    let rows = 16;
    let mut layout = Layout::new();
    let tokens = layout.add("tokens", &[VOCABULARY, WIDTH], true);
    let weights = noise(bench, layout.len());
    let (hidden, mut logits) = (noise(bench, rows * WIDTH), noise(bench, rows * VOCABULARY));
    let bytes = (4 * tokens.len()) as f64;
    bench.run("logits of 16 rows", &Work::Bytes(bytes), |cpu| {
        cpu.logits(rows, tokens, &weights, &hidden, &mut logits);
    });
    for (name, inputs, outputs) in [("expand", 512, 2048), ("contract", 2048, 512)] {
        // More layers than fit the caches.
        let layers: Vec<_> = (0..96).map(|_| linear_layer(bench, inputs, outputs)).collect();
        let (x, mut y) = (noise(bench, rows * inputs), noise(bench, rows * outputs));
        let bytes = (96 * 4 * inputs * outputs) as f64;
        bench.run(&format!("{name} 16 rows, 96 layers"), &Work::Bytes(bytes), |cpu| {
            for (layer, weights, _) in &layers {
                cpu.linear(rows, *layer, weights, &x, &mut y);
            }
        });
    }
}

fn linear_layer(bench: &Bench, inputs: usize, outputs: usize) -> (Linear, Buffer, Buffer) {
    let mut layout = Layout::new();
    let layer = Linear {
        weight: layout.add("weight", &[outputs, inputs], true),
        bias: layout.add("bias", &[outputs], false),
    };
    (layer, noise(bench, layout.len()), noise(bench, layout.len()))
}

fn attention(bench: &Bench) {
    for sequences in [SEQUENCES, Sequences { count: 2, length: 1024 }] {
        let positions = sequences.positions();
        let qkv = noise(bench, positions * 3 * WIDTH);
        let [mut out, d_out] = [0; 2].map(|_| noise(bench, positions * WIDTH));
        let mut log_sums = noise(bench, positions * HEADS.count);
        let mut d_qkv = noise(bench, positions * 3 * WIDTH);
        // Half of all pairs, since queries see keys up to their own.
        let flops = 4.0 * (positions * (sequences.length + 1) / 2 * WIDTH) as f64;
        let length = sequences.length;
        bench.run(&format!("attention {length}"), &Work::Flops(flops), |cpu| {
            cpu.attention(sequences, HEADS, &qkv, &mut out, &mut log_sums);
        });
        bench.run(&format!("attention_backward {length}"), &Work::Flops(2.5 * flops), |cpu| {
            cpu.attention_backward(sequences, HEADS, &qkv, &out, &log_sums, &d_out, &mut d_qkv);
        });
    }
}

fn norms(bench: &Bench) {
    let rows = SEQUENCES.positions();
    let mut layout = Layout::new();
    let norm = Norm {
        gain: layout.add("gain", &[WIDTH], false),
        bias: layout.add("bias", &[WIDTH], false),
    };
    let (weights, mut gradients) = (noise(bench, layout.len()), noise(bench, layout.len()));
    let clock = bench.cpu.clock().expect("a clock is small");
    let size = rows * WIDTH;
    let [x, branch, mut sum, mut normed, mut d_branch] = [0; 5].map(|_| noise(bench, size));
    let mut statistics = noise(bench, rows * 2);
    let bytes = (4 * size) as f64;
    for probability in [0.0, 0.1] {
        let dropout = Dropout { probability, site: 0, clock: &clock };
        let name = format!("residual_norm p={probability}");
        bench.run(&name, &Work::Bytes(4.0 * bytes), |cpu| {
            cpu.residual_norm(
                rows,
                norm,
                &weights,
                dropout,
                &x,
                &branch,
                &mut sum,
                &mut normed,
                &mut statistics,
            );
        });
        let name = format!("residual_norm_backward p={probability}");
        bench.run(&name, &Work::Bytes(5.0 * bytes), |cpu| {
            cpu.residual_norm_backward(
                rows,
                norm,
                &weights,
                dropout,
                &x,
                &statistics,
                &normed,
                &mut sum,
                &mut d_branch,
                &mut gradients,
            );
        });
    }
}

/// Tokens drawn from Zipf's distribution, as in real text.
fn zipf_tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    let mut cumulative: Vec<f64> = Vec::with_capacity(vocabulary);
    for rank in 1..=vocabulary {
        cumulative.push(cumulative.last().unwrap_or(&0.0) + 1.0 / rank as f64);
    }
    let total = cumulative[vocabulary - 1];
    let mut random = Philox::new(3, [0; 3]);
    (0..count)
        .map(|_| random.uniform() * total)
        .map(|draw| cumulative.partition_point(|&sum| sum <= draw) as u32)
        .collect()
}

/// Classes of equal mass under the same distribution.
fn class_ends(vocabulary: usize) -> Vec<u32> {
    let total: f64 = (1..=vocabulary).map(|rank| 1.0 / rank as f64).sum();
    let (mut ends, mut sum) = (Vec::new(), 0.0);
    for rank in 1..=vocabulary {
        sum += 1.0 / rank as f64;
        if sum * CLASSES as f64 >= (ends.len() + 1) as f64 * total && ends.len() + 1 < CLASSES {
            ends.push(rank as u32);
        }
    }
    ends.push(vocabulary as u32);
    ends
}

fn embedding(bench: &Bench) {
    let mut layout = Layout::new();
    let embedding = Embedding {
        tokens: layout.add("tokens", &[VOCABULARY, WIDTH], true),
        positions: layout.add("positions", &[SEQUENCES.length, WIDTH], true),
    };
    let (weights, mut gradients) = (noise(bench, layout.len()), noise(bench, layout.len()));
    let ids = zipf_tokens(SEQUENCES.positions(), VOCABULARY);
    let mut tokens = bench.cpu.tokens(ids.len()).expect("there is memory");
    let clock = bench.cpu.clock().expect("a clock is small");
    let dropout = Dropout { probability: 0.1, site: 0, clock: &clock };
    let mut x = noise(bench, ids.len() * WIDTH);
    let bytes = (4 * ids.len() * WIDTH) as f64;
    bench.run("load_tokens", &Work::Bytes(12.0 * ids.len() as f64), |cpu| {
        cpu.load_tokens(&ids, &mut tokens);
    });
    bench.run("embed", &Work::Bytes(2.0 * bytes), |cpu| {
        cpu.embed(SEQUENCES, embedding, &weights, &tokens, dropout, &mut x);
    });
    bench.run("embed_backward", &Work::Bytes(4.0 * bytes), |cpu| {
        cpu.embed_backward(SEQUENCES, embedding, &tokens, dropout, &x, &mut gradients);
    });
}

fn heads(bench: &Bench, vocabulary: usize) {
    let mut layout = Layout::new();
    let classes = layout.add("classes", &[CLASSES, WIDTH], true);
    let tokens = layout.add("tokens", &[vocabulary, WIDTH], true);
    let classes = Classes { vectors: classes, ends: class_ends(vocabulary) };
    let plain = Head::plain(tokens);
    let (weights, mut gradients) = (noise(bench, layout.len()), noise(bench, layout.len()));
    let positions = SEQUENCES.positions();
    let ids = zipf_tokens(positions, vocabulary);
    let (hidden, mut d_hidden) = (noise(bench, positions * WIDTH), noise(bench, positions * WIDTH));
    let mut losses = noise(bench, 2 * positions);
    let weight = 1.0 / positions as f32;

    let allocated = "there is memory";
    let mut targets = bench.cpu.targets(positions, &plain).expect(allocated);
    bench.cpu.load_targets(&plain, &Labels::uniform(&ids, weight), &mut targets);
    let flops = 2.0 * (positions * vocabulary * WIDTH) as f64;
    bench.run(&format!("softmax_loss {vocabulary}"), &Work::Flops(flops), |cpu| {
        cpu.loss(&plain, &weights, &mut targets, &hidden, &mut losses);
    });
    bench.run(&format!("softmax_loss_backward {vocabulary}"), &Work::Flops(3.0 * flops), |cpu| {
        cpu.loss_backward(
            &plain,
            &weights,
            &mut targets,
            &hidden,
            &mut losses,
            &mut d_hidden,
            &mut gradients,
        );
    });

    let members = |id: &u32| classes.members(classes.class_of(*id)).len();
    let scored: usize = ids.iter().map(|id| members(id) + CLASSES).sum();
    let f2 = Head { tokens, classes: Some(classes) };
    let mut targets = bench.cpu.targets(positions, &f2).expect(allocated);
    bench.cpu.load_targets(&f2, &Labels::uniform(&ids, weight), &mut targets);
    let flops = 2.0 * (scored * WIDTH) as f64;
    bench.run(&format!("f2_loss {vocabulary}"), &Work::Flops(flops), |cpu| {
        cpu.loss(&f2, &weights, &mut targets, &hidden, &mut losses);
    });
    bench.run(&format!("f2_loss_backward {vocabulary}"), &Work::Flops(3.0 * flops), |cpu| {
        cpu.loss_backward(
            &f2,
            &weights,
            &mut targets,
            &hidden,
            &mut losses,
            &mut d_hidden,
            &mut gradients,
        );
    });
}

fn optimiser(bench: &Bench) {
    let len = 18_000_000;
    let (mut weights, mut gradients) = (noise(bench, len), noise(bench, len));
    let mut moments: Moments<Cpu> = Moments { first: noise(bench, len), second: noise(bench, len) };
    moments.second.iter_mut().for_each(|x| *x = x.abs());
    let mut norm = noise(bench, 1);
    bench.run("global_norm", &Work::Bytes(4.0 * len as f64), |cpu| {
        cpu.global_norm(&gradients, &mut norm);
    });
    let settings = AdamW {
        learning_rate: 1e-4,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.01,
        decay: Decay::Decoupled,
        clip: 0.25,
        update: 10,
    };
    let decayed = std::slice::from_ref(&(0..len)).to_vec();
    bench.run("adamw", &Work::Bytes(32.0 * len as f64), |cpu| {
        cpu.adamw(settings, &decayed, &norm, &mut weights, &mut moments, &mut gradients);
    });
}
