use f2_engine::{Device, Dropout, Sequences};

use super::Decoder;

/// A batch on its way through the decoder, and all that is only read there.
pub struct Pass<'a, D: Device> {
    /// Does the work.
    pub device: &'a D,
    /// How many sequences, and how long.
    pub sequences: Sequences,
    /// All parameters.
    pub weights: &'a D::Weights,
    /// The input tokens.
    pub tokens: &'a D::Tokens,
    /// The moment dropout is drawn at.
    pub clock: &'a D::Clock,
    /// Whether dropout acts.
    pub training: bool,
}

impl<D: Device> Pass<'_, D> {
    pub(super) fn rows(&self) -> usize {
        self.sequences.positions()
    }

    pub(super) fn dropout(&self, decoder: &Decoder, site: Site) -> Dropout<'_, D> {
        let probability = if self.training { decoder.shape.model.dropout as f32 } else { 0.0 };
        Dropout { probability, site: site.number(), clock: self.clock }
    }
}

/// Where dropout acts. Every place draws its own numbers.
#[derive(Clone, Copy)]
pub(super) enum Site {
    Embedding,
    Attention(usize),
    FeedForward(usize),
}

impl Site {
    fn number(self) -> u32 {
        match self {
            Self::Embedding => 0,
            Self::Attention(layer) => 1 + 2 * layer as u32,
            Self::FeedForward(layer) => 2 + 2 * layer as u32,
        }
    }
}
