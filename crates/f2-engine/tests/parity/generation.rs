//! Spans of cached sequences: embedding, attention and reordering.

use f2_engine::{AttentionHeads, Device, Embedding, Layout, Span};

use super::{Bench, Outcome, Scenario, compare};

/// Prompts of several lengths, then tokens one by one, then a reordered cache.
struct Generation {
    heads: AttentionHeads,
    prompts: Vec<usize>,
    steps: usize,
}

impl Generation {
    fn parts(&self) -> (Layout, Embedding) {
        let mut layout = Layout::new();
        let width = self.heads.total_width();
        let tokens = layout.add("tokens", &[50, width], true);
        let positions = layout.add("positions", &[self.capacity(), width], true);
        (layout, Embedding { tokens, positions })
    }

    fn capacity(&self) -> usize {
        self.prompts.iter().max().unwrap() + self.steps
    }

    /// The spans of a step: the prompts in step 0, then single tokens.
    fn spans(&self, step: usize) -> Vec<Span> {
        let mut first_row = 0;
        let mut span = |(sequence, &prompt): (usize, &usize)| {
            let (cached, rows) = if step == 0 { (0, prompt) } else { (prompt + step - 1, 1) };
            let sequence = sequence as u32;
            let span = Span { sequence, cached: cached as u32, first_row, rows: rows as u32 };
            first_row += rows as u32;
            span
        };
        self.prompts.iter().enumerate().map(&mut span).collect()
    }
}

impl Scenario for Generation {
    fn layout(&self) -> Layout {
        self.parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (_, embedding) = self.parts();
        let (width, count) = (self.heads.total_width(), self.prompts.len());
        let mut cache = bench.device.cache(2, count, self.capacity(), self.heads).unwrap();
        let mut spans = bench.device.spans(count).unwrap();
        let (mut all, mut embedded) = (Vec::new(), Vec::new());
        for step in 0..=self.steps {
            if step == self.steps - 1 {
                // Only beams require prompts of equal length.
                let parents: Vec<u32> = (0..count as u32).map(|i| i / 2).collect();
                let shortest = self.prompts.iter().min().unwrap() + step - 1;
                bench.device.reorder_cache(&parents, shortest, &mut cache);
            }
            let list = self.spans(step);
            let rows = list.iter().map(|span| span.rows as usize).sum::<usize>();
            let qkv = bench.input(rows * 3 * width, step as u32);
            let (mut out, mut x) = (bench.output(rows * width), bench.output(rows * width));
            let ids: Vec<u32> = (0..rows as u32).map(|i| i * 7 % 50).collect();
            let Bench { device, weights, .. } = bench;
            let mut tokens = device.indices(rows).unwrap();
            device.write_indices(&ids, &mut tokens);
            device.load_spans(&list, &mut spans);
            device.embed_spans(embedding, weights, &tokens, &spans, &mut x);
            device.attention_cached(1, &spans, &qkv, &mut cache, &mut out);
            all.extend(bench.read(&out, rows * width));
            embedded.extend(bench.read(&x, rows * width));
        }
        let from = bench.input(9 * width, 99);
        let mut rows = bench.device.indices(4).unwrap();
        bench.device.write_indices(&[8, 0, 3, 3], &mut rows);
        let mut picked = bench.output(4 * width);
        bench.device.gather(width, &rows, &from, &mut picked);
        let picked = bench.read(&picked, 4 * width);
        vec![("attended", all), ("embedded", embedded), ("picked", picked)]
    }
}

#[test]
fn attention_to_a_cache() {
    let heads = AttentionHeads { count: 3, width: 5 };
    compare(&Generation { heads, prompts: vec![5, 5, 5], steps: 4 });
    let heads = AttentionHeads { count: 8, width: 64 };
    compare(&Generation { heads, prompts: vec![50; 40], steps: 5 });
}
