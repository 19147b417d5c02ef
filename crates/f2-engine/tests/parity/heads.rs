//! Losses, predictions and posteriors of both heads, with ignored positions and penalties.

use std::ops::Range;

use f2_engine::{Classes, Device, Head, IGNORED, Labels, Layout, Penalties, Weighting};

use super::{Bench, Outcome, Scenario, compare, is_emulated, random};

struct Heads {
    positions: usize,
    width: usize,
    ends: Vec<u32>,
    /// Every `ignored`-th position is ignored; zero for none.
    ignored: usize,
    penalties: bool,
}

impl Heads {
    /// The plain softmax and F² with the same token vectors.
    fn parts(&self) -> (Layout, Head, Head) {
        let mut layout = Layout::new();
        let vectors = layout.add("classes", &[self.ends.len(), self.width], true);
        let tokens = layout.add("tokens", &[self.vocabulary(), self.width], true);
        let classes = Some(Classes { vectors, ends: self.ends.clone() });
        (layout, Head::plain(tokens), Head { tokens, classes })
    }

    fn vocabulary(&self) -> usize {
        *self.ends.last().unwrap() as usize
    }

    /// Targets distributed evenly over the classes.
    fn ids(&self) -> Vec<u32> {
        let classes = self.ends.len();
        (0..self.positions)
            .map(|i| {
                let class = i * 5 % classes;
                let start = class.checked_sub(1).map_or(0, |before| self.ends[before]);
                let id = start + (i * i) as u32 % (self.ends[class] - start);
                if self.ignored > 0 && i % self.ignored == 0 { IGNORED } else { id }
            })
            .collect()
    }
}

impl Scenario for Heads {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, plain, f2) = self.parts();
        let (positions, width, vocabulary) = (self.positions, self.width, self.vocabulary());
        let ids = self.ids();
        let weights: Vec<f32> = (0..positions).map(|i| 0.01 * (i % 7 + 1) as f32).collect();
        let candidates: Vec<u32> = (0..vocabulary.min(20) as u32).collect();
        let most = candidates.len() as u32;
        let ranges: Vec<Range<u32>> =
            (0..positions as u32).map(|i| i % 3..(i % 3).max(i % (most + 1))).collect();
        let penalties =
            Penalties { candidates: &candidates, ranges: &ranges, weight: 0.02, floor: 1e-5 };
        let labels = Labels {
            ids: &ids,
            weights: Weighting::Each(&weights),
            penalties: self.penalties.then_some(penalties),
        };
        let unpenalised = Labels { penalties: None, ..labels };
        // Logits of about unit variance.
        let scale = 1.0 / (width as f32).sqrt();
        let hidden: Vec<f32> = random(positions * width, 1).iter().map(|x| scale * x).collect();
        let hidden = bench.upload(&super::exact(&hidden));
        let mut d_hidden = [0; 2].map(|_| bench.output(positions * width));
        let mut losses = [0; 4].map(|_| bench.floats(2 * positions));
        let mut outcome = Outcome::new();
        // Buffers for F² are large enough for the plain softmax.
        let mut targets = bench.device.targets(positions, &f2).unwrap();
        let Bench { device, weights, gradients, .. } = bench;
        let [d_plain, d_f2] = &mut d_hidden;
        device.load_targets(&plain, &labels, &mut targets);
        device.loss(&plain, weights, &mut targets, &hidden, &mut losses[0]);
        let to = &mut losses[1];
        device.loss_backward(&plain, weights, &mut targets, &hidden, to, d_plain, gradients);
        let mut winners = device.indices(positions).unwrap();
        let mut predictions = vec![0; positions];
        device.predictions(&plain, weights, &mut targets, &hidden, &mut winners);
        device.read_indices(&winners, &mut predictions).unwrap();
        let floats = |ids: &[u32]| ids.iter().map(|&id| (id % 65_536) as f32).collect();
        outcome.push(("predictions", floats(&predictions)));
        outcome.push(("d tokens", bench.gradient(plain.tokens)));
        let Bench { device, weights, gradients, .. } = bench;
        device.zero_floats(gradients);
        device.load_targets(&f2, &unpenalised, &mut targets);
        device.loss(&f2, weights, &mut targets, &hidden, &mut losses[2]);
        let to = &mut losses[3];
        device.loss_backward(&f2, weights, &mut targets, &hidden, to, d_f2, gradients);
        device.predictions(&f2, weights, &mut targets, &hidden, &mut winners);
        device.read_indices(&winners, &mut predictions).unwrap();
        outcome.push(("predictions of F²", floats(&predictions)));
        let names = ["plain loss", "plain loss with gradient", "F² loss", "F² loss with gradient"];
        for (name, losses) in names.into_iter().zip(&losses) {
            outcome.push((name, bench.read_floats(losses, 2 * positions)));
        }
        outcome.push(("d hidden", bench.read(&d_hidden[0], positions * width)));
        outcome.push(("d hidden of F²", bench.read(&d_hidden[1], positions * width)));
        outcome.push(("d classes of F²", bench.gradient(f2.classes.as_ref().unwrap().vectors)));
        outcome.push(("d tokens of F²", bench.gradient(f2.tokens)));
        self.posteriors(bench, &f2, &hidden, &mut outcome);
        outcome
    }
}

impl Heads {
    fn posteriors<D: Device>(
        &self,
        bench: &mut Bench<D>,
        f2: &Head,
        hidden: &D::Activations,
        outcome: &mut Outcome,
    ) {
        let (rows, vocabulary) = (self.positions.min(50), self.vocabulary());
        let [mut posterior, mut logits] = [0; 2].map(|_| bench.floats(rows * vocabulary));
        let Bench { device, weights, .. } = bench;
        device.log_posterior(rows, f2, weights, hidden, &mut posterior);
        device.logits(rows, f2.tokens, weights, hidden, &mut logits);
        outcome.push(("logits", bench.read_floats(&logits, rows * vocabulary)));
        bench.device.log_softmax(rows, vocabulary, &mut logits);
        outcome.push(("log softmax", bench.read_floats(&logits, rows * vocabulary)));
        outcome.push(("log posterior of F²", bench.read_floats(&posterior, rows * vocabulary)));
    }
}

#[test]
fn small_heads_with_holes_and_penalties() {
    for penalties in [false, true] {
        let ends = vec![1, 3, 4, 11, 29];
        compare(&Heads { positions: 37, width: 13, ends, ignored: 5, penalties });
    }
}

#[test]
fn heads_of_every_position() {
    let ends = vec![1, 9, 64, 500, 2500, 9001];
    compare(&Heads { positions: 700, width: 64, ends, ignored: 0, penalties: true });
}

/// More logits than fit one chunk.
#[test]
fn heads_of_the_papers_size() {
    if is_emulated() {
        println!("skipped: the emulator is too slow for heads of the paper's size");
        return;
    }
    let ends = vec![4, 17, 70, 260, 900, 3000, 9600, 30_000];
    compare(&Heads { positions: 3000, width: 512, ends, ignored: 50, penalties: false });
}
