//! Dropout: where and when its masks are drawn. Embedding and norms apply them.

use super::Memory;
use crate::Error;

/// The device's copy of the [`Moment`] that masks are drawn at.
pub trait Dropouts: Memory {
    /// A [`Moment`] in the device's memory.
    type Clock;

    /// A clock.
    fn clock(&self) -> Result<Self::Clock, Error>;
    /// Sets the moment dropout is drawn at.
    fn set_clock(&self, moment: Moment, to: &mut Self::Clock);
}

/// The moment dropout is drawn at: with the element's place, all its randomness depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The run's seed.
    pub seed: u64,
    /// The training step.
    pub step: u32,
    /// How many positions of the step's batch belong to earlier micro-batches, so that a batch
    /// split in any way draws the same masks.
    pub first_position: u64,
}

/// Dropout at one site of the model.
///
/// Every counter of [`philox`](crate::philox) decides eight columns by sixteen bits each. Position
/// `i`, column `j` of a site of width `w` has the counter `[b, b >> 32, site, step]` with
/// `b = (first_position + i) · ⌈w / 8⌉ + j / 8` and the seed as key; of its word `j % 8 / 2` an even
/// column takes the lower half, an odd one the upper. The element stays
/// where that reaches `t = round(probability · 2¹⁶)`, divided by `1 - t / 2¹⁶`, and is zero elsewhere.
#[derive(Debug)]
pub struct Dropout<'a, D: Dropouts> {
    /// Zero disables dropout.
    pub probability: f32,
    /// The site's own number: no two sites of a model share one.
    pub site: u32,
    /// The moment, in the device's memory.
    pub clock: &'a D::Clock,
}

impl<D: Dropouts> Clone for Dropout<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Dropouts> Copy for Dropout<'_, D> {}
