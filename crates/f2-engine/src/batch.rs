//! What a batch looks like to an operation: its sequences, heads, randomness and spans.

use crate::Device;

/// A batch of sequences of one length. Positions are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    /// How many sequences.
    pub count: usize,
    /// How many tokens each has.
    pub length: usize,
}

impl Sequences {
    /// All positions of the batch.
    pub fn positions(self) -> usize {
        self.count * self.length
    }
}

/// Attention's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// How many.
    pub count: usize,
    /// The width of each one's queries, keys and values.
    pub width: usize,
}

impl Heads {
    /// The width of all heads together.
    pub fn total_width(self) -> usize {
        self.count * self.width
    }
}

/// The moment dropout is drawn at: with the element's place, all its randomness depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The run's seed.
    pub seed: u64,
    /// The training step.
    pub step: u32,
    /// How many positions of the step's batch came in earlier micro-batches, so that a batch
    /// split in any way draws the same masks.
    pub first_position: u64,
}

/// Dropout at one site of the model.
///
/// Every counter of [`philox`](crate::philox) decides eight columns by sixteen bits each. Position
/// `i`, column `j` of a site of width `w` has the counter `[b, b >> 32, site, step]` with
/// `b = (first_position + i) · ⌈w / 8⌉ + j / 8` and the seed as key; of its word `j % 8 / 2` an even
/// column takes the lower half, an odd one the upper. It is kept where that reaches
/// `t = round(probability · 2¹⁶)`, and what is kept is divided by `1 - t / 2¹⁶`.
#[derive(Debug)]
pub struct Dropout<'a, D: Device> {
    /// Zero keeps everything.
    pub probability: f32,
    /// The site's own number: no two sites of a model share one.
    pub site: u32,
    /// The moment, in the device's memory.
    pub clock: &'a D::Clock,
}

impl<D: Device> Clone for Dropout<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Dropout<'_, D> {}

/// The new tokens of one cached sequence, within a batch of such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which sequence of the cache they continue.
    pub sequence: u32,
    /// How many of its tokens the cache holds already; the first new one has this position.
    pub cached: u32,
    /// Where the new tokens begin in the batch.
    pub first_row: u32,
    /// How many there are: the whole prompt at first, then one at a time.
    pub rows: u32,
}
