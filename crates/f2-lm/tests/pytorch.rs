//! The decoder beside PyTorch: same weights, same batches. `oracle/decoder.py` froze the values,
//! computed in double precision; ours are `f32`.

use std::fs;
use std::path::PathBuf;

use f2_engine::{Cpu, Device};
use f2_lm::batch::TrainingWindows;
use f2_lm::config::{ModelConfig, ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::model::{Decoder, ModelShape, Network};
use f2_lm::train::Trainer;
use safetensors::SafeTensors;
use serde_json::Value;

/// How far a gradient may be from PyTorch's, in parts of the largest entry of its tensor:
/// single precision leaves about 1e-6.
const GRADIENT_TOLERANCE: f32 = 1e-4;
const LOSS_TOLERANCE: f64 = 1e-3;

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read(folder.join(name)).unwrap()
}

fn size(about: &Value, key: &str) -> usize {
    about[key].as_u64().unwrap() as usize
}

fn floats(tensors: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = tensors.tensor(name).unwrap().data().as_chunks().0;
    bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Puts the frozen weights into a fresh trainer.
fn trainer(
    about: &Value,
    tensors: &SafeTensors<'_>,
    objective: ObjectiveName,
    micro: usize,
) -> Trainer<Cpu> {
    let model = &about["model"];
    let mut config = TrainConfig {
        model: ModelConfig {
            layers: size(model, "layers"),
            width: size(model, "width"),
            heads: size(model, "heads"),
            feed_forward: size(model, "feed_forward"),
            dropout: 0.0,
            ..ModelConfig::default()
        },
        ..TrainConfig::default()
    };
    config.objective.name = objective;
    config.batch.size = size(about, "batch");
    config.batch.sequence = size(about, "sequence");
    config.batch.micro = micro;
    let class_ends = if objective.needs_classes() {
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
    let Network { device, decoder, weights, .. } = &mut trainer.network;
    for named in decoder.layout.parameters() {
        let values = floats(tensors, &format!("weight/{}", named.name));
        device.write_weights(&values, named.parameter, weights);
    }
    trainer
}

/// The batch of one step as a text of its own: the frozen windows follow one another.
fn batch(about: &Value, tensors: &SafeTensors<'_>, step: usize) -> (TrainingWindows, Vec<u32>) {
    let bytes = tensors.tensor("tokens").unwrap().data().as_chunks().0;
    let stream: Vec<u32> = bytes.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let mut config = TrainConfig::default().batch;
    (config.size, config.sequence) = (size(about, "batch"), size(about, "sequence"));
    config.order = WindowOrder::Streams;
    let length = config.size * config.sequence;
    let text = stream[step * length..=(step + 1) * length].to_vec();
    (TrainingWindows::new(text.len() as u64, &config, 0).unwrap(), text)
}

fn check_gradients(objective: ObjectiveName, micro: usize) {
    let about: Value = serde_json::from_slice(&fixture("decoder.json")).unwrap();
    let bytes = fixture("decoder.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut trainer = trainer(&about, &tensors, objective, micro);
    let (windows, text) = batch(&about, &tensors, 0);
    trainer.accumulate(&windows, &text, 0).unwrap();
    let Network { device, decoder, gradients, .. } = &trainer.network;
    for named in decoder.layout.parameters() {
        let expected = floats(&tensors, &format!("{}/{}", objective.as_str(), named.name));
        let mut found = vec![0.0; expected.len()];
        let offset = named.parameter.offset;
        device.read_floats(gradients, offset, &mut found).unwrap();
        let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let farthest = expected.iter().zip(&found).map(|(e, f)| (e - f).abs()).fold(0.0, f32::max);
        assert!(
            farthest <= GRADIENT_TOLERANCE * largest,
            "{}: off by {farthest}, largest entry {largest}",
            named.name
        );
    }
}

fn check_ten_steps(objective: ObjectiveName) {
    let about: Value = serde_json::from_slice(&fixture("decoder.json")).unwrap();
    let bytes = fixture("decoder.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut trainer = trainer(&about, &tensors, objective, 0);
    let optimiser = serde_json::from_value(about["optimiser"].clone());
    let optimiser: f2_lm::config::OptimiserConfig = optimiser.unwrap();
    for (step, expected) in
        about["losses"][objective.as_str()].as_array().unwrap().iter().enumerate()
    {
        let (windows, text) = batch(&about, &tensors, step);
        let update = optimiser.update(step as u64 + 1, 1.0);
        let report = trainer.step(&windows, &text, step as u64, update).unwrap();
        let (found, expected) = (f64::from(report.loss), expected.as_f64().unwrap());
        let off = (found / expected - 1.0).abs();
        // The first loss has no update behind it and must be far closer.
        let tolerance = if step == 0 { LOSS_TOLERANCE * 1e-2 } else { LOSS_TOLERANCE };
        assert!(off < tolerance, "step {step}: {found} instead of {expected}");
    }
}

#[test]
fn gradients_of_maximum_likelihood() {
    check_gradients(ObjectiveName::Mle, 0);
}

#[test]
fn gradients_of_f2() {
    check_gradients(ObjectiveName::F2, 0);
}

#[test]
fn gradients_add_up_over_micro_batches() {
    check_gradients(ObjectiveName::Mle, 1);
    check_gradients(ObjectiveName::F2, 1);
}

#[test]
fn ten_steps_of_maximum_likelihood() {
    check_ten_steps(ObjectiveName::Mle);
}

#[test]
fn ten_steps_of_f2() {
    check_ten_steps(ObjectiveName::F2);
}
