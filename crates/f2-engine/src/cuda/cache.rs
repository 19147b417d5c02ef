//! Attention to keys and values of earlier tokens.

use super::attention::{by_rows, scale};
use super::launch::{Grid, arguments};
use super::memory::Buffer;
use super::stream::Stream;
use super::upload::Upload;
use super::{Cuda, Precision};
use crate::{Error, Heads, Span};

/// Keys and values, `[layers, 2, sequences, heads, capacity, head width]`: what one head of one
/// sequence reads lies together.
#[derive(Debug)]
pub struct Cache<E> {
    elements: Buffer<E>,
    /// Keys or values of one layer, while they are reordered.
    part: Buffer<E>,
    parents: Upload,
    layers: usize,
    sequences: usize,
    capacity: usize,
    heads: Heads,
}

impl<E: Copy> Cache<E> {
    pub(super) fn new(
        stream: &Stream,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: Heads,
    ) -> Result<Self, Error> {
        let part = sequences * capacity * heads.total_width();
        Ok(Self {
            elements: Buffer::zeroed(stream, layers * 2 * part)?,
            part: Buffer::zeroed(stream, part)?,
            parents: Upload::new(stream, sequences)?,
            layers,
            sequences,
            capacity,
            heads,
        })
    }

    /// Where a layer's keys (0) or values (1) begin.
    fn start(&self, layer: usize, part: usize) -> u64 {
        self.elements.at((layer * 2 + part) * self.part.len())
    }
}

/// Every row's sequence and place in it, as the GPU reads them: `[sequences | places]`.
#[derive(Debug)]
pub struct Spans {
    words: Upload,
    rows: usize,
}

impl Spans {
    pub(super) fn new(stream: &Stream, count: usize) -> Result<Self, Error> {
        Ok(Self { words: Upload::new(stream, 2 * count)?, rows: 0 })
    }

    pub(super) fn load(&mut self, spans: &[Span]) {
        let rows = spans.iter().map(|span| (span.first_row + span.rows) as usize).max();
        self.rows = rows.unwrap_or(0);
        let mut words = vec![0; 2 * self.rows];
        let (sequences, places) = words.split_at_mut(self.rows);
        for span in spans {
            for row in 0..span.rows {
                sequences[(span.first_row + row) as usize] = span.sequence;
                places[(span.first_row + row) as usize] = span.cached + row;
            }
        }
        self.words.write_all(&words);
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    fn sequences(&self) -> u64 {
        self.words.at(0)
    }

    pub(super) fn places(&self) -> u64 {
        self.words.at(self.rows)
    }
}

impl<P: Precision> Cuda<P> {
    /// Puts the rows' keys and values into the cache and attends to it.
    pub(super) fn attend_cached(
        &self,
        layer: usize,
        spans: &Spans,
        qkv: &Buffer<P::Element>,
        cache: &Cache<P::Element>,
        out: &Buffer<P::Element>,
    ) {
        let (rows, heads, capacity) = (spans.rows(), cache.heads, cache.capacity);
        let Heads { count, width } = heads;
        let (sequences, places) = (spans.sequences(), spans.places());
        let (keys, values) = (cache.start(layer, 0), cache.start(layer, 1));
        let qkv = qkv.at(0);
        self.launch(
            "store_in_cache",
            Grid::blocks(rows, 128),
            arguments![rows, count, width, capacity, sequences, places, qkv, keys, values],
        );
        self.launch(
            "attend_to_cache",
            by_rows(rows, heads, 2),
            arguments![
                rows,
                count,
                width,
                capacity,
                scale(heads),
                sequences,
                places,
                qkv,
                keys,
                values,
                out.at(0),
            ],
        );
    }

    /// Sequence `i` becomes a copy of sequence `parents[i]`'s first `length` tokens.
    pub(super) fn reorder(&self, parents: &[u32], length: usize, cache: &mut Cache<P::Element>) {
        assert!(parents.len() <= cache.sequences, "a cache of {} sequences", cache.sequences);
        cache.parents.write_all(parents);
        let Heads { count, width } = cache.heads;
        let (head_len, used) = (cache.capacity * width, length * width);
        let grid = |sequences: usize| Grid::blocks(sequences, 256).by(count);
        for index in 0..2 * cache.layers {
            let (place, copy) = (cache.start(index / 2, index % 2), cache.part.at(0));
            let (none, parents_at) = (0_u64, cache.parents.at(0));
            self.launch(
                "copy_sequences",
                grid(cache.sequences),
                arguments![count, head_len, used, none, place, copy],
            );
            self.launch(
                "copy_sequences",
                grid(parents.len()),
                arguments![count, head_len, used, parents_at, copy, place],
            );
        }
    }
}
