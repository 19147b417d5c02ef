//! Reference values of the decoder from PyTorch: weights, batches, and gradients to compare with.

// Every test file uses its own part of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::fs;
use std::path::PathBuf;

use f2_engine::Cpu;
use f2_engine::prelude::*;
use f2_lm::batch::TrainingBatches;
use f2_lm::config::{TrainConfig, WindowOrder};
use f2_lm::model::{Decoder, Model, ModelShape, Network};
use f2_lm::train::Trainer;
use safetensors::SafeTensors;
use serde_json::Value;

/// How far a gradient may be from PyTorch's, relative to the largest entry of its tensor: single
/// precision leaves about 1e-6.
const GRADIENT_TOLERANCE: f32 = 1e-4;

pub fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read(folder.join(name)).unwrap()
}

pub fn json(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

pub fn size(about: &Value, key: &str) -> usize {
    about[key].as_u64().unwrap() as usize
}

pub fn floats(tensors: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = tensors.tensor(name).unwrap().data().as_chunks().0;
    bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// A fresh trainer with the frozen weights; `configure` sets what it minimises.
pub fn trainer(configure: impl FnOnce(&mut TrainConfig)) -> Trainer<Cpu> {
    let about = json("decoder.json");
    let model = &about["model"];
    let mut config = TrainConfig::default();
    (config.model.layers, config.model.width) = (size(model, "layers"), size(model, "width"));
    config.model.heads = size(model, "heads");
    config.model.feed_forward = size(model, "feed_forward");
    config.model.dropout = 0.0;
    (config.batch.size, config.batch.sequence) = (size(&about, "batch"), size(&about, "sequence"));
    configure(&mut config);
    let class_ends = if config.objective.name.needs_classes() {
        serde_json::from_value(about["class_ends"].clone()).unwrap()
    } else {
        Vec::new()
    };
    let decoder = Decoder::new(ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary: size(model, "vocabulary"),
        class_ends,
    });
    let mut trainer = Trainer::new(Cpu::new(2).unwrap(), decoder, &config).unwrap();
    let bytes = fixture("decoder.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let Model { device, decoder, weights } = &mut trainer.network.model;
    for named in decoder.layout.parameters() {
        let values = floats(&tensors, &format!("weight/{}", named.name));
        device.write_weights(&values, named.parameter, weights);
    }
    trainer
}

/// The batch of one step as a text of its own: the frozen windows follow one another.
pub fn batch(step: usize) -> (TrainingBatches, Vec<u32>) {
    let about = json("decoder.json");
    let bytes = fixture("decoder.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let bytes = tensors.tensor("tokens").unwrap().data().as_chunks().0;
    let stream: Vec<u32> = bytes.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let mut config = TrainConfig::default().batch;
    (config.size, config.sequence) = (size(&about, "batch"), size(&about, "sequence"));
    config.order = WindowOrder::Streams;
    let length = config.size * config.sequence;
    let text = stream[step * length..=(step + 1) * length].to_vec();
    (TrainingBatches::new(&text, &config, 0).unwrap(), text)
}

/// Compares every gradient of the trainer with the reference values under a name.
pub fn assert_gradients(trainer: &Trainer<Cpu>, file: &str, name: &str) {
    let bytes = fixture(file);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let Network { model: Model { device, decoder, .. }, gradients, .. } = &trainer.network;
    for named in decoder.layout.parameters() {
        let expected = floats(&tensors, &format!("{name}/{}", named.name));
        let mut found = vec![0.0; expected.len()];
        device.read_floats(gradients, named.parameter.offset, &mut found).unwrap();
        let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let farthest = expected.iter().zip(&found).map(|(e, f)| (e - f).abs()).fold(0.0, f32::max);
        assert!(
            farthest <= GRADIENT_TOLERANCE * largest,
            "{}: off by {farthest}, largest entry {largest}",
            named.name
        );
    }
}
