//! Attention to keys and values of earlier tokens.

use crate::cuda::memory::Buffer;
use crate::cuda::runtime::{Stream, Upload};
use crate::{AttentionHeads, Error, Span};

/// Keys and values, `[layers, 2, sequences, heads, capacity, head width]`: those of one head of one
/// sequence are contiguous.
#[derive(Debug)]
pub struct Cache<E> {
    elements: Buffer<E>,
    /// A copy of one layer's keys or values, while they are reordered.
    pub(super) part: Buffer<E>,
    pub(super) parents: Upload,
    pub(super) layers: usize,
    pub(super) sequences: usize,
    pub(super) capacity: usize,
    pub(super) heads: AttentionHeads,
}

impl<E: Copy> Cache<E> {
    pub(super) fn new(
        stream: &Stream,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: AttentionHeads,
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

    /// The address of a layer's keys (0) or values (1).
    pub(super) fn start(&self, layer: usize, part: usize) -> u64 {
        self.elements.at((layer * 2 + part) * self.part.len())
    }
}

/// The sequence of every row and its position there, on the GPU: `[sequences | places]`.
#[derive(Debug)]
pub struct Spans {
    words: Upload,
    rows: usize,
}

impl Spans {
    pub(in crate::cuda) fn new(stream: &Stream, count: usize) -> Result<Self, Error> {
        Ok(Self { words: Upload::new(stream, 2 * count)?, rows: 0 })
    }

    pub(in crate::cuda) fn load(&mut self, spans: &[Span]) {
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

    pub(in crate::cuda) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn sequences(&self) -> u64 {
        self.words.at(0)
    }

    pub(in crate::cuda) fn places(&self) -> u64 {
        self.words.at(self.rows)
    }
}
