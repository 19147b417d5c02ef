//! Dropout's clock, and the mask parameters that kernels take.

use super::runtime::Upload;
use super::{Cuda, Precision};
use crate::{Dropout, Dropouts, Error, Moment};

/// Words of a [`Clock`]: seed and first position, two words each, and the step.
const CLOCK_WORDS: usize = 5;

/// The [`Moment`] at which dropout is drawn, in GPU memory, so that a replayed graph draws new
/// masks.
#[derive(Debug)]
pub struct Clock(Upload);

impl<P: Precision> Dropouts for Cuda<P> {
    type Clock = Clock;

    fn clock(&self) -> Result<Clock, Error> {
        Ok(Clock(Upload::new(&self.stream, CLOCK_WORDS)?))
    }

    fn set_clock(&self, moment: Moment, to: &mut Clock) {
        let Moment { seed, step, first_position } = moment;
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let ([a, b], [c, d]) = (halves(seed), halves(first_position));
        to.0.write(CLOCK_WORDS, |words| words.copy_from_slice(&[a, b, c, d, step]));
    }
}

/// The dropout of one site, in the form that kernels take.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    pub(super) clock: u64,
    pub(super) site: u32,
    pub(super) threshold: u32,
    pub(super) scale: f32,
}

impl Mask {
    pub(super) const NONE: Self = Self { clock: 0, site: 0, threshold: 0, scale: 1.0 };

    pub(super) fn of<P: Precision>(dropout: Dropout<'_, Cuda<P>>) -> Self {
        let threshold = (f64::from(dropout.probability) * 65_536.0).round();
        Self {
            clock: dropout.clock.0.at(0),
            site: dropout.site,
            threshold: u32::from(threshold as u16),
            scale: (1.0 / (1.0 - threshold / 65_536.0)) as f32,
        }
    }
}
