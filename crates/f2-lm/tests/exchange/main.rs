//! Import from and export to `transformers`. `oracle/gpt2.py` wrote the folders and froze the
//! logits.

mod export;
mod import;
mod refusals;
mod round_trip;

use std::fs;
use std::path::{Path, PathBuf};

use f2_engine::prelude::*;
use f2_engine::{Cpu, Sequences};
use f2_lm::exchange::{ExchangeError, ForeignModel};
use f2_lm::model::{Batch, Model, Recordings, Workspace};
use f2_lm::run::{Pick, SavedModel};
use safetensors::SafeTensors;

/// How far logits may be from those of `transformers`; single precision leaves about 1e-6.
const TOLERANCE: f32 = 1e-4;

/// All folders the oracle wrote.
const FOLDERS: [&str; 6] = ["tied", "untied", "tied-bare", "untied-bare", "sharded", "bfloat16"];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn hub(name: &str) -> PathBuf {
    fixture("gpt2").join(name)
}

/// Imports a folder and opens the result.
fn import(from: &Path, to: &Path) -> Result<SavedModel, ExchangeError> {
    ForeignModel::open(from)?.write(to, &mut |_| true)?;
    Ok(SavedModel::open(to, Pick::Best).unwrap())
}

/// The model's hidden states after each token, and its logits or, for F², log-probabilities.
fn run(model: &SavedModel, tokens: &[u32]) -> (Vec<f32>, Vec<f32>) {
    let loaded = model.load(Cpu::new(1).unwrap()).unwrap();
    let rows = tokens.len();
    let mut workspace = Workspace::new(&loaded, rows).unwrap();
    let sequences = Sequences { count: 1, length: rows };
    let batch = Batch { sequences, inputs: tokens, dropout: None };
    workspace.forward(&loaded, batch, &mut Recordings::default());
    let Model { device, decoder, weights } = &loaded;
    let mut hidden = vec![0.0; rows * model.shape.model.width];
    device.read_activations(workspace.hidden(), &mut hidden).unwrap();
    let mut out = device.floats(rows * model.shape.vocabulary).unwrap();
    let head = &decoder.head;
    match &head.classes {
        None => device.logits(rows, head.tokens, weights, workspace.hidden(), &mut out),
        Some(_) => device.log_posterior(rows, head, weights, workspace.hidden(), &mut out),
    }
    let mut values = vec![0.0; rows * model.shape.vocabulary];
    device.read_floats(&out, 0, &mut values).unwrap();
    (hidden, values)
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let farthest = found.iter().zip(expected).map(|(f, e)| (f - e).abs()).fold(0.0, f32::max);
    assert!(farthest <= TOLERANCE, "{what}: off by {farthest}");
}

/// The tensors of a file, sorted by name: name, shape, bytes.
fn tensors(path: &Path) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> = file
        .iter()
        .map(|(name, view)| (name.to_owned(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    tensors.sort();
    tensors
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
