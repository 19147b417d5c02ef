//! Dropout: the sites and steps its masks are drawn for. Embedding and norms apply them.

use super::Memory;
use crate::Error;

/// The device's copy of the [`Moment`] that dropout masks depend on.
pub trait Dropouts: Memory {
    /// A [`Moment`] in the device's memory.
    type Clock;

    /// Allocates a clock.
    fn clock(&self) -> Result<Self::Clock, Error>;
    /// Sets the moment that later masks are drawn for.
    fn set_clock(&self, moment: Moment, to: &mut Self::Clock);
}

/// The step a dropout mask is drawn for. A mask depends on it and on the element's site, position
/// and column alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The run's seed.
    pub seed: u64,
    /// The training step.
    pub step: u32,
    /// The number of the batch's positions in earlier micro-batches, so that masks do not depend on
    /// how a batch is split.
    pub first_position: u64,
}

/// Dropout at one site of the model.
///
/// Every counter of [`philox`](crate::philox) gives sixteen bits to each of eight columns. Position
/// `i`, column `j` of a site of width `w` has the counter `[b, b >> 32, site, step]` with
/// `b = (first_position + i) · ⌈w / 8⌉ + j / 8` and the seed as key. An even column takes the lower
/// half of word `j % 8 / 2`, an odd one the upper half. With `t = round(probability · 2¹⁶)`, the
/// element is divided by `1 - t / 2¹⁶` if these bits are at least `t`, and set to zero otherwise.
#[derive(Debug)]
pub struct Dropout<'a, D: Dropouts> {
    /// Zero disables dropout.
    pub probability: f32,
    /// The site's number, unique within the model.
    pub site: u32,
    /// The [`Moment`], in the device's memory.
    pub clock: &'a D::Clock,
}

impl<D: Dropouts> Clone for Dropout<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Dropouts> Copy for Dropout<'_, D> {}
