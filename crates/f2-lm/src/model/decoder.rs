//! The decoder's shape, the layout of its parameters, the order in which their gradients become
//! final, and the parameters on a device.

use f2_engine::{AttentionHeads, Classes, Device, Embedding, Head, Layout, Norm, Parameter};

use super::block::{Block, add_norm};
use crate::Error;
use crate::config::ModelConfig;

/// The sizes that determine the parameters of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// The blocks.
    pub model: ModelConfig,
    /// The longest sequence.
    pub positions: usize,
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// Where each frequency class ends; empty for the plain softmax.
    pub class_ends: Vec<u32>,
}

/// The layout of the parameters, by name. Holds no values.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Its sizes.
    pub shape: ModelShape,
    /// Where each parameter is in the flat buffer.
    pub layout: Layout,
    /// Token and position vectors.
    pub embedding: Embedding,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// After the last block.
    pub final_norm: Norm,
    /// The output layer.
    pub head: Head,
    /// The attention heads.
    pub heads: AttentionHeads,
}

impl Decoder {
    /// Computes the layout of the parameters. The class vectors come last, so that all others have
    /// the same offset and initial values with either head.
    pub fn new(shape: ModelShape) -> Self {
        let (model, width) = (&shape.model, shape.model.width);
        let mut layout = Layout::new();
        let embedding = Embedding {
            tokens: layout.add("embedding.tokens", &[shape.vocabulary, width], true),
            positions: layout.add("embedding.positions", &[shape.positions, width], true),
        };
        let blocks = (0..model.layers).map(|layer| Block::new(&mut layout, layer, model)).collect();
        let final_norm = add_norm(&mut layout, "final_norm", width);
        let tokens = if model.tied {
            embedding.tokens
        } else {
            layout.add("head.tokens", &[shape.vocabulary, width], true)
        };
        let classes = (!shape.class_ends.is_empty()).then(|| Classes {
            vectors: layout.add("head.classes", &[shape.class_ends.len(), width], true),
            ends: shape.class_ends.clone(),
        });
        let head = Head { tokens, classes };
        let heads = AttentionHeads { count: model.heads, width: width / model.heads };
        Self { shape, layout, embedding, blocks, final_norm, head, heads }
    }

    /// The norm that follows block `layer`: the next block's first, or the final one.
    pub(super) fn norm_after(&self, layer: usize) -> Norm {
        self.blocks.get(layer + 1).map_or(self.final_norm, |block| block.attention_norm)
    }

    /// How many stages the backward pass has below the head: one for each block, from the last to
    /// the first, and one for the embedding.
    pub(super) fn stages(&self) -> usize {
        self.blocks.len() + 1
    }

    /// The offset from which on the gradient is final: before the first stage, and after each.
    /// Parameters are laid out in the order of their use, so the offsets descend to 0. The gradient
    /// of a block's first norm becomes final in the stage after that of the block, and that of tied
    /// token vectors in the last one.
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

/// A decoder with its parameters on a device.
pub struct Model<D: Device> {
    /// The device that holds the parameters and computes.
    pub device: D,
    /// The layout of the parameters.
    pub decoder: Decoder,
    /// The parameters.
    pub weights: D::Weights,
}

impl<D: Device> Model<D> {
    /// A model whose parameters are all zero.
    pub fn zeros(device: D, decoder: Decoder) -> Result<Self, Error> {
        let weights = device.weights(decoder.layout.len())?;
        Ok(Self { device, decoder, weights })
    }

    /// A model before training, its parameters drawn at random from `seed`.
    pub fn initialised(device: D, decoder: Decoder, seed: u64) -> Result<Self, Error> {
        let mut model = Self::zeros(device, decoder)?;
        model.initialise(seed);
        Ok(model)
    }

    /// The values of a parameter, row by row.
    pub fn values(&self, parameter: Parameter) -> Result<Vec<f32>, Error> {
        let mut values = vec![0.0; parameter.len()];
        self.device.read_weights(&self.weights, parameter, &mut values)?;
        Ok(values)
    }

    /// Overwrites the values of a parameter, row by row.
    pub fn set_values(&mut self, parameter: Parameter, values: &[f32]) {
        self.device.write_weights(values, parameter, &mut self.weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigLayers, Preset};

    fn paper(preset: Preset, vocabulary: usize, class_ends: Vec<u32>) -> Decoder {
        let config = ConfigLayers::new().preset(preset).resolve().unwrap().config;
        let positions = config.batch.sequence;
        Decoder::new(ModelShape { model: config.model, positions, vocabulary, class_ends })
    }

    /// Twelve blocks of 3,152,384, two matrices of 30,000 × 512, 1,024 positions, a final norm.
    #[test]
    fn the_papers_model_has_69_1_million_parameters() {
        let plain = paper(Preset::Wikitext103, 30_000, Vec::new());
        let expected = 12 * 3_152_384 + 2 * 30_000 * 512 + 1_024 * 512 + 1_024;
        assert_eq!(plain.layout.count(), expected);
        assert_eq!((plain.layout.count() as f64 / 1e5).round() / 10.0, 69.1);
        let ends: Vec<u32> =
            (1..=19).map(|class| if class == 19 { 30_000 } else { class }).collect();
        assert_eq!(paper(Preset::Wikitext103, 30_000, ends).layout.count(), expected + 19 * 512);
    }

    /// The numbers of parameters of the models published as `gpt2` and `gpt2-medium`.
    #[test]
    fn the_shapes_of_gpt2_have_its_parameters() {
        let count = |preset| paper(preset, 50_257, Vec::new()).layout.count();
        assert_eq!(count(Preset::Gpt2Small), 124_439_808);
        assert_eq!(count(Preset::Gpt2Medium), 354_823_168);
    }

    #[test]
    fn tying_removes_the_output_matrix() {
        let model = ModelConfig { tied: true, ..ModelConfig::default() };
        let shape = ModelShape { model, positions: 8, vocabulary: 100, class_ends: vec![3, 100] };
        let decoder = Decoder::new(shape);
        assert_eq!(decoder.head.tokens, decoder.embedding.tokens);
        assert!(decoder.layout.parameters().iter().all(|named| named.name != "head.tokens"));
    }

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
