//! Floating-point operations of training.

use f2_engine::{Head, IGNORED};

use super::Decoder;

/// Floating-point operations of training, to compare its speed with the device's peak. Counts the
/// matrix products that are needed: two operations per weight forward, four backward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Operations per position below the head, forward and backward.
    pub trunk: f64,
    /// Operations per position and output vector it is compared with, forward and backward.
    pub per_output: f64,
}

impl Work {
    /// The work of a decoder on sequences of `length`.
    pub fn new(decoder: &Decoder, length: usize) -> Self {
        let model = &decoder.shape.model;
        let matrices = model.layers * model.width * (4 * model.width + 2 * model.feed_forward);
        // Scores and weighted values, each over half the positions on average.
        let attention = model.layers * model.width * length;
        Self { trunk: 6.0 * (matrices + attention) as f64, per_output: 6.0 * model.width as f64 }
    }

    /// The operations of a step on these targets.
    pub fn of_step(&self, head: &Head, targets: &[u32]) -> f64 {
        self.trunk * targets.len() as f64 + self.per_output * compared(head, targets)
    }
}

/// How many output vectors all targets together are compared with.
fn compared(head: &Head, targets: &[u32]) -> f64 {
    let known = targets.iter().filter(|target| **target != IGNORED);
    let vectors: usize = match &head.classes {
        None => head.tokens.rows * known.count(),
        Some(classes) => known
            .map(|target| classes.members(classes.class_of(*target)).len() + classes.count())
            .sum(),
    };
    vectors as f64
}
