//! Embedding and its gradients, with dropout.

use f2_engine::{Device, Dropout, Embedding, Layout, Sequences};

use super::{Bench, Outcome, Scenario, compare};

struct Embed {
    vocabulary: usize,
    width: usize,
    sequences: Sequences,
}

impl Embed {
    fn parts(&self) -> (Layout, Embedding) {
        let mut layout = Layout::new();
        let tokens = layout.add("tokens", &[self.vocabulary, self.width], true);
        let positions = layout.add("positions", &[self.sequences.length + 2, self.width], true);
        (layout, Embedding { tokens, positions })
    }
}

impl Scenario for Embed {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, embedding) = self.parts();
        let positions = self.sequences.positions();
        let size = positions * self.width;
        // Small ids are favoured: some tokens occur very often, most never.
        let ids: Vec<u32> = (0..positions)
            .map(|i| ((i * i * 7 % 1009) * (i % 13) / 13 % self.vocabulary) as u32)
            .collect();
        let mut tokens = bench.device.tokens(positions).unwrap();
        bench.device.load_tokens(&ids, &mut tokens);
        let (mut x, d_x) = (bench.output(size), bench.input(size, 3));
        let Bench { device, weights, gradients, clock } = bench;
        let dropout = Dropout { probability: 0.3, site: 4, clock };
        device.embed(self.sequences, embedding, weights, &tokens, dropout, &mut x);
        device.embed_backward(self.sequences, embedding, &tokens, dropout, &d_x, gradients);
        vec![
            ("embedded", bench.read(&x, size)),
            ("d tokens", bench.gradient(embedding.tokens)),
            ("d positions", bench.gradient(embedding.positions)),
        ]
    }
}

#[test]
fn embedding_and_its_gradients() {
    for (vocabulary, width, count, length) in
        [(11, 7, 3, 5), (700, 512, 4, 300), (50, 264, 2, 40), (3, 8, 1, 1)]
    {
        compare(&Embed { vocabulary, width, sequences: Sequences { count, length } });
    }
}
