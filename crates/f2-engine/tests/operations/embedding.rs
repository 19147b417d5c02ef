//! Embedding, its gradients and dropout.

use f2_engine::prelude::*;
use f2_engine::{Dropout, Embedding, Layout, Sequences};

use super::reference::{dot, slope};
use super::{Bench, assert_close, random};

#[test]
fn embedding_and_its_gradients() {
    let (vocabulary, width, sequences) = (11, 7, Sequences { count: 3, length: 5 });
    let mut layout = Layout::new();
    let embedding = Embedding {
        tokens: layout.add("tokens", &[vocabulary, width], true),
        positions: layout.add("positions", &[9, width], true),
    };
    let mut bench = Bench::new(&layout);
    let ids = [4, 4, 0, 10, 4, 1, 0, 0, 9, 4, 4, 2, 10, 10, 4];
    let mut tokens = bench.cpu.tokens(ids.len()).unwrap();
    bench.cpu.load_tokens(&ids, &mut tokens);
    let clock = bench.clock;
    let dropout = Dropout { probability: 0.4, site: 2, clock: &clock };
    let size = ids.len() * width;
    let mut x = bench.cpu.activations(size).unwrap();
    bench.cpu.embed(sequences, embedding, &bench.weights, &tokens, dropout, &mut x);

    let (by_token, by_place) = (bench.weight(embedding.tokens), bench.weight(embedding.positions));
    // Dropout draws sixteen bits: 0.4 is rounded to 26,214 of 65,536.
    let scale = 65_536.0 / (65_536.0 - 26_214.0);
    let mask: Vec<f64> = x.iter().map(|&x| if x == 0.0 { 0.0 } else { scale }).collect();
    let kept = mask.iter().filter(|&&factor| factor > 0.0).count() as f64 / size as f64;
    assert!((kept - 0.6).abs() < 0.12, "{kept}");
    let embed = |tokens: &[f64], places: &[f64]| -> Vec<f64> {
        (0..size)
            .map(|i| {
                let (position, column) = (i / width, i % width);
                let token = ids[position] as usize;
                let place = position % sequences.length;
                mask[i] * (tokens[token * width + column] + places[place * width + column])
            })
            .collect()
    };
    assert_close(&x, &embed(&by_token, &by_place), 1e-6);

    let d_x = random(size, 3);
    let d_buffer = bench.upload(&d_x);
    bench.cpu.embed_backward(
        sequences,
        embedding,
        &tokens,
        dropout,
        &d_buffer,
        &mut bench.gradients,
    );
    let slope_tokens = slope(&by_token, |tokens| dot(&embed(tokens, &by_place), &d_x));
    assert_close(&bench.gradient(embedding.tokens), &slope_tokens, 1e-5);
    let slope_places = slope(&by_place, |places| dot(&embed(&by_token, places), &d_x));
    assert_close(&bench.gradient(embedding.positions), &slope_places, 1e-5);
}
