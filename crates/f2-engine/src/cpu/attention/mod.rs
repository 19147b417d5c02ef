//! Causal attention, in strips of queries.
//!
//! The scores of a strip fit the cache: they are computed, turned into probabilities and used, but
//! not stored. The backward pass recomputes the probabilities with the saved log-sums.

mod cache;
mod reorder;
mod strip;

use super::Cpu;
use super::memory::Buffer;
use super::product::{Packed, Write};
use super::threads::{Shared, with_scratch};
use crate::{Attention, AttentionHeads, Error, Sequences, Span};
use cache::Cache;
use strip::{
    AttentionHead, Backward, HeadInput, KeysAndValues, Strip, backward_strip_rows, strip_rows,
};

impl Attention for Cpu {
    type Cache = Cache;

    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: AttentionHeads,
    ) -> Result<Cache, Error> {
        Cache::new(layers, sequences, capacity, heads)
    }

    fn attention(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Buffer,
        out: &mut Buffer,
        log_sums: &mut Buffer,
    ) {
        let precision = self.precision;
        let strip_rows = strip_rows(precision);
        let out = Shared::new(out);
        let log_sums = &mut log_sums[..heads.count * sequences.positions()];
        self.threads.zip_chunks([(log_sums, sequences.length)], |task, [log_sums]| {
            let head = AttentionHead::of(sequences, heads, task);
            let packed = Packed::len(head.width, head.length);
            let lens = [strip_rows * head.length, packed, Packed::len(head.length, head.width)];
            with_scratch(lens, |[scores, keys, values]| {
                let source = HeadInput { head, qkv, precision };
                let keys = source.pack_transposed(1, keys);
                let values = source.pack(2, values);
                for start in (0..head.length).step_by(strip_rows) {
                    let rows = strip_rows.min(head.length - start);
                    let strip = Strip { head, start, rows };
                    let log_sums = &mut log_sums[start..start + rows];
                    strip.forward(qkv, keys, values, scores, &out, log_sums);
                }
            });
        });
    }

    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
        d_out: &Buffer,
        d_qkv: &mut Buffer,
    ) {
        let from = &Backward { qkv, out, log_sums, d_out };
        let precision = self.precision;
        let strip_rows = backward_strip_rows(precision);
        let d_qkv = Shared::new(d_qkv);
        self.threads.each(sequences.count * heads.count, |task| {
            let head = AttentionHead::of(sequences, heads, task);
            let log_sums = &from.log_sums[task * head.length..][..head.length];
            let strip = strip_rows * head.length;
            let transposed = Packed::len(head.width, head.length);
            let straight = Packed::len(head.length, head.width);
            let lens = [strip, strip, transposed, transposed, straight];
            with_scratch(lens, |[probabilities, d_scores, key_panels, value_panels, keys]| {
                let source = HeadInput { head, qkv: from.qkv, precision };
                let packed = KeysAndValues {
                    precision,
                    keys_transposed: source.pack_transposed(1, key_panels),
                    values_transposed: source.pack_transposed(2, value_panels),
                    keys: source.pack(1, keys),
                };
                // The last strip sees every key, so it comes first and overwrites; the others add.
                let mut write = Write::Overwrite;
                for start in (0..head.length).step_by(strip_rows).rev() {
                    let rows = strip_rows.min(head.length - start);
                    let strip = Strip { head, start, rows };
                    strip.scores(from, &packed, log_sums, probabilities, d_scores);
                    strip.propagate(from, &packed, probabilities, d_scores, write, &d_qkv);
                    write = Write::Add;
                }
            });
        });
    }

    fn attention_cached(
        &self,
        layer: usize,
        spans: &Vec<Span>,
        qkv: &Buffer,
        cache: &mut Cache,
        out: &mut Buffer,
    ) {
        cache.store(layer, spans, qkv);
        let (cache, heads) = (&*cache, cache.heads.count);
        let out = Shared::new(out);
        self.threads.each(spans.len() * heads, |task| {
            cache.attend(layer, spans[task / heads], task % heads, qkv, &out);
        });
    }

    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Cache) {
        cache.reorder(parents, length);
    }
}
