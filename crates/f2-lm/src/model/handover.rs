//! The gradient in parts, handed over as a backward pass finishes them.

use f2_engine::Device;

use super::Decoder;
use crate::Error;

/// Takes the gradient in parts, as the last backward pass of a step finishes them: from the end of
/// the flat buffer to its start.
pub trait Handover<D: Device> {
    /// Where each part begins. It ends where the part before begins, the first one with the buffer;
    /// the last one begins at 0.
    fn starts(&self) -> Vec<usize>;

    /// Takes the next part: its gradient does not change any more.
    fn take(&mut self, device: &D, gradients: &D::Floats) -> Result<(), Error>;
}

impl Decoder {
    /// How many stages the backward pass has below the head: one for each block, from the last to
    /// the first, and one for the embedding.
    pub(super) fn stages(&self) -> usize {
        self.blocks.len() + 1
    }

    /// From which place on the gradient is final: before the first stage, and after each. What is
    /// used first lies first, so that the places descend to 0. The first norm of a block is
    /// finished by the stage after that of the block, and tied token vectors by the last one.
    pub fn finals(&self) -> Vec<usize> {
        let classes = self.head.classes.as_ref().map(|classes| classes.vectors.offset);
        let head = if self.shape.model.tied {
            classes.unwrap_or(self.layout.len())
        } else {
            self.head.tokens.offset
        };
        let blocks = self.blocks.iter().rev().map(|block| block.qkv.weight.offset);
        [head].into_iter().chain(blocks).chain([0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ModelConfig;
    use crate::model::{Decoder, ModelShape};

    fn decoder(tied: bool, class_ends: Vec<u32>) -> Decoder {
        let model = ModelConfig { tied, ..ModelConfig::default() };
        Decoder::new(ModelShape { model, positions: 8, vocabulary: 100, class_ends })
    }

    #[test]
    fn the_gradient_becomes_final_from_its_end_to_its_start() {
        for (tied, class_ends) in [(false, vec![]), (true, vec![]), (true, vec![3, 100])] {
            let decoder = decoder(tied, class_ends);
            let finals = decoder.finals();
            assert_eq!(finals.len(), decoder.stages() + 1);
            assert!(finals.windows(2).all(|pair| pair[0] > pair[1]), "{finals:?}");
            assert_eq!(finals[finals.len() - 1], 0);
        }
    }

    #[test]
    fn tied_token_vectors_are_finished_last() {
        let plain = decoder(true, vec![]);
        assert_eq!(plain.finals()[0], plain.layout.len());
        let classes = decoder(true, vec![3, 100]);
        let vectors = classes.head.classes.as_ref().unwrap().vectors;
        assert_eq!(classes.finals()[0], vectors.offset);
        let untied = decoder(false, vec![]);
        assert_eq!(untied.finals()[0], untied.head.tokens.offset);
    }
}
