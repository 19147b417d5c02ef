//! A recorded graph must have the effect of its operations, with the tokens and moment of each
//! replay.

use f2_engine::{Device, Dropout, Embedding, Layout, Linear, Moment, Sequences};

use super::{Bench, Outcome, Scenario, compare};

const SEQUENCES: Sequences = Sequences { count: 2, length: 24 };
const WIDTH: usize = 64;

struct Replay;

fn parts() -> (Layout, Embedding, Linear) {
    let mut layout = Layout::new();
    let embedding = Embedding {
        tokens: layout.add("tokens", &[40, WIDTH], true),
        positions: layout.add("positions", &[SEQUENCES.length, WIDTH], true),
    };
    let linear = Linear {
        weight: layout.add("weight", &[WIDTH, WIDTH], true),
        bias: layout.add("bias", &[WIDTH], false),
    };
    (layout, embedding, linear)
}

impl Scenario for Replay {
    fn layout(&self) -> Layout {
        parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, embedding, linear) = parts();
        let rows = SEQUENCES.positions();
        let [mut x, mut y, mut d_x] = [0; 3].map(|_| bench.output(rows * WIDTH));
        let d_y = bench.input(rows * WIDTH, 6);
        let mut tokens = bench.device.tokens(rows).unwrap();
        let mut recording = D::Recording::default();
        let mut outputs = Vec::new();
        for step in 0..5 {
            let ids: Vec<u32> = (0..rows as u32).map(|i| i * (step + 1) % 40).collect();
            let Bench { device, weights, gradients, clock } = bench;
            device.set_clock(Moment { seed: 1, step, first_position: 0 }, clock);
            device.load_tokens(&ids, &mut tokens);
            let dropout = Dropout { probability: 0.2, site: 0, clock };
            device.replay(&mut recording, &mut || {
                device.embed(SEQUENCES, embedding, weights, &tokens, dropout, &mut x);
                device.linear(rows, linear, weights, &x, &mut y);
                device.linear_backward(rows, linear, weights, &x, &d_y, &mut d_x, gradients);
                device.embed_backward(SEQUENCES, embedding, &tokens, dropout, &d_x, gradients);
            });
            outputs.extend(bench.read(&y, rows * WIDTH));
        }
        vec![
            ("outputs", outputs),
            ("d tokens", bench.gradient(embedding.tokens)),
            ("d weight", bench.gradient(linear.weight)),
        ]
    }
}

#[test]
fn replays_draw_anew() {
    compare(&Replay);
}
