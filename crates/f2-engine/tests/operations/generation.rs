//! Spans of cached sequences: embedding, attention and reordering.

use f2_engine::prelude::*;
use f2_engine::{AttentionHeads, Embedding, Layout, Span};

use super::reference::attention;
use super::{Bench, assert_close, random};

const HEADS: AttentionHeads = AttentionHeads { count: 3, width: 5 };

/// Two sequences of different lengths, prompts first, then token by token: the result must equal
/// attention over the whole sequences.
#[test]
fn cached_attention_is_attention() {
    let bench = Bench::new(&Layout::new());
    let width = HEADS.total_width();
    let lengths = [9, 6];
    let whole = lengths.map(|length| random(length * 3 * width, length as u32));
    let mut cache = bench.cpu.cache(2, 2, 10, HEADS).unwrap();
    let mut spans = bench.cpu.spans(2).unwrap();
    let mut seen = [0, 0];
    let mut outputs = [Vec::new(), Vec::new()];
    for step in [[5, 2], [1, 1], [1, 1], [1, 1], [1, 0], [0, 1]] {
        let mut batch = Vec::new();
        let mut list = Vec::new();
        let mut first_row = 0;
        for sequence in 0..2 {
            let (from, rows) = (seen[sequence], step[sequence]);
            batch.extend_from_slice(&whole[sequence][from * 3 * width..(from + rows) * 3 * width]);
            list.push(Span {
                sequence: sequence as u32,
                cached: from as u32,
                first_row: first_row as u32,
                rows: rows as u32,
            });
            first_row += rows;
            seen[sequence] += rows;
        }
        bench.cpu.load_spans(&list, &mut spans);
        let qkv = bench.upload(&batch);
        let mut out = bench.cpu.activations(first_row * width).unwrap();
        bench.cpu.attention_cached(1, &spans, &qkv, &mut cache, &mut out);
        for (span, outputs) in list.iter().zip(&mut outputs) {
            let start = span.first_row as usize * width;
            outputs.extend_from_slice(&out[start..start + span.rows as usize * width]);
        }
    }
    for ((whole, outputs), length) in whole.iter().zip(&outputs).zip(lengths) {
        assert_close(outputs, &attention(whole, 1, length, HEADS.count, HEADS.width), 1e-5);
    }
}

/// Two sequences that swap places, one that stays, and two that form a chain.
#[test]
fn a_reordered_cache_continues_its_parents() {
    const PARENTS: [u32; 5] = [1, 0, 2, 2, 3];
    let bench = Bench::new(&Layout::new());
    let width = HEADS.total_width();
    let prompts = random(5 * 4 * 3 * width, 1);
    let next = random(5 * 3 * width, 2);
    let mut cache = bench.cpu.cache(2, 5, 6, HEADS).unwrap();
    let mut spans = bench.cpu.spans(5).unwrap();
    let all = |cached: u32, rows: u32| -> Vec<Span> {
        let span = |sequence| Span { sequence, cached, first_row: sequence * rows, rows };
        (0..5).map(span).collect()
    };
    let mut out = bench.cpu.activations(5 * 4 * width).unwrap();
    for layer in 0..2 {
        bench.cpu.load_spans(&all(0, 4), &mut spans);
        bench.cpu.attention_cached(layer, &spans, &bench.upload(&prompts), &mut cache, &mut out);
    }
    bench.cpu.reorder_cache(&PARENTS, 4, &mut cache);
    for layer in 0..2 {
        bench.cpu.load_spans(&all(4, 1), &mut spans);
        bench.cpu.attention_cached(layer, &spans, &bench.upload(&next), &mut cache, &mut out);
        let rows = |of: &[f64], rows: usize, sequence: usize| {
            of[sequence * rows * 3 * width..(sequence + 1) * rows * 3 * width].to_vec()
        };
        for (sequence, &parent) in PARENTS.iter().enumerate() {
            let whole = [rows(&prompts, 4, parent as usize), rows(&next, 1, sequence)].concat();
            let expected = attention(&whole, 1, 5, HEADS.count, HEADS.width);
            assert_close(&out[sequence * width..][..width], &expected[4 * width..], 1e-5);
        }
    }
}

#[test]
fn new_tokens_get_the_positions_of_their_spans() {
    let mut layout = Layout::new();
    let embedding = Embedding {
        tokens: layout.add("tokens", &[6, 3], true),
        positions: layout.add("positions", &[8, 3], true),
    };
    let bench = Bench::new(&layout);
    let (tokens, places) = (bench.weight(embedding.tokens), bench.weight(embedding.positions));
    let mut ids = bench.cpu.indices(3).unwrap();
    bench.cpu.write_indices(&[5, 0, 2], &mut ids);
    let mut spans = bench.cpu.spans(2).unwrap();
    let list = [
        Span { sequence: 1, cached: 4, first_row: 0, rows: 2 },
        Span { sequence: 0, cached: 7, first_row: 2, rows: 1 },
    ];
    bench.cpu.load_spans(&list, &mut spans);
    let mut x = bench.cpu.activations(9).unwrap();
    bench.cpu.embed_spans(embedding, &bench.weights, &ids, &spans, &mut x);
    let sum = |token: usize, place: usize, i: usize| tokens[token * 3 + i] + places[place * 3 + i];
    let expected: Vec<f64> = [(5, 4), (0, 5), (2, 7)]
        .into_iter()
        .flat_map(|(token, place)| (0..3).map(move |i| (token, place, i)))
        .map(|(token, place, i)| sum(token, place, i))
        .collect();
    assert_close(&x, &expected, 1e-6);
}
