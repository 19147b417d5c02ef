//! Random parameters to start training from.

use f2_engine::{Device, NamedParameter, Philox};
use rayon::prelude::*;

use super::{Decoder, Model};

/// The standard deviation of every matrix and embedding (GPT-2, and the authors' code).
const DEVIATION: f64 = 0.02;
/// Keeps these draws apart from all others made with the run's seed.
const PURPOSE: u32 = u32::from_le_bytes(*b"init");

impl<D: Device> Model<D> {
    /// Draws starting values: matrices from N(0, 0.02), gains one, biases zero. A parameter's
    /// values depend on the seed, its place in the layout and nothing else.
    pub fn initialise(&mut self, seed: u64) {
        let Self { device, decoder, weights } = self;
        for (index, named) in decoder.layout.parameters().iter().enumerate() {
            let values = decoder.starting_values(named, index as u32, seed);
            device.write_weights(&values, named.parameter, weights);
        }
    }
}

impl Decoder {
    fn starting_values(&self, named: &NamedParameter, index: u32, seed: u64) -> Vec<f32> {
        let mut values = vec![0.0; named.parameter.len()];
        match named.name.rsplit('.').next() {
            Some("gain") => values.fill(1.0),
            Some("bias") => {}
            _ => {
                let deviation = self.deviation(&named.name);
                let rows = values.par_chunks_mut(named.parameter.columns).enumerate();
                rows.for_each(|(row, values)| {
                    let mut random = Philox::new(seed, [index, row as u32, PURPOSE]);
                    values.fill_with(|| (deviation * random.normal()) as f32);
                });
            }
        }
        values
    }

    fn deviation(&self, name: &str) -> f64 {
        let into_stream =
            name.ends_with("attention_out.weight") || name.ends_with("contract.weight");
        if into_stream && self.shape.model.residual_scaling {
            DEVIATION / (2.0 * self.shape.model.layers as f64).sqrt()
        } else {
            DEVIATION
        }
    }
}

#[cfg(test)]
mod tests {
    use f2_engine::Cpu;

    use super::*;
    use crate::config::ModelConfig;
    use crate::model::ModelShape;

    fn decoder(residual_scaling: bool, class_ends: Vec<u32>) -> Decoder {
        let model = ModelConfig {
            layers: 2,
            width: 64,
            heads: 2,
            feed_forward: 96,
            residual_scaling,
            ..ModelConfig::default()
        };
        Decoder::new(ModelShape { model, positions: 16, vocabulary: 301, class_ends })
    }

    fn values(decoder: &Decoder, seed: u64, name: &str) -> Vec<f32> {
        let device = Cpu::new(1).unwrap();
        let model = Model::initialised(device, decoder.clone(), seed).unwrap();
        let all = decoder.layout.parameters();
        let parameter = all.iter().find(|named| named.name == name).unwrap().parameter;
        model.values(parameter).unwrap()
    }

    fn deviation(values: &[f32]) -> f64 {
        let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        (squares / values.len() as f64).sqrt()
    }

    #[test]
    fn matrices_have_the_stated_deviation() {
        let decoder = decoder(true, Vec::new());
        // 19,264 and 6,144 draws: the sample's deviation is almost surely within 2 %.
        assert!((deviation(&values(&decoder, 1, "embedding.tokens")) / 0.02 - 1.0).abs() < 0.03);
        let scaled = deviation(&values(&decoder, 1, "block.1.contract.weight"));
        assert!((scaled / 0.01 - 1.0).abs() < 0.04, "{scaled}");
        assert!(values(&decoder, 1, "final_norm.gain").iter().all(|gain| *gain == 1.0));
        assert!(values(&decoder, 1, "block.0.qkv.bias").iter().all(|bias| *bias == 0.0));
    }

    #[test]
    fn both_heads_start_from_the_same_trunk() {
        let (plain, f2) = (decoder(false, Vec::new()), decoder(false, vec![4, 301]));
        for name in ["embedding.tokens", "block.1.qkv.weight", "head.tokens"] {
            assert_eq!(values(&plain, 5, name), values(&f2, 5, name));
        }
        assert_ne!(values(&plain, 5, "head.tokens"), values(&plain, 6, "head.tokens"));
    }
}
