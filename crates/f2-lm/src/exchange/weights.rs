//! The tensors of a Hugging Face folder, in one file or in shards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use f2_files::is_file_name;
use serde::Deserialize;

use super::ExchangeError;
use super::files::read_text;
use super::names::{EMBEDDING, Foreign, OUTPUT, PREFIX, is_mask, transpose};
use crate::tensor_file::TensorFile;

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Files in which `transformers` and its predecessors keep weights in other formats.
const FOREIGN: [&str; 6] = [
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tf_model.h5",
    "flax_model.msgpack",
    "model.pt",
    "model.ckpt.index",
];

/// The tensors of a model folder, in one file or in shards.
#[derive(Debug)]
pub(super) struct Weights {
    files: Vec<(PathBuf, TensorFile)>,
    /// The index in `files` of each tensor's file.
    places: BTreeMap<String, usize>,
    /// The prefix of the trunk's names.
    prefix: &'static str,
    /// The path that errors name: the file, or the index of the shards.
    path: PathBuf,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// Opens all files and reads their headers.
    pub(super) fn open(folder: &Path) -> Result<Self, ExchangeError> {
        let (whole, index) = (folder.join(WHOLE), folder.join(INDEX));
        let mut weights = if whole.exists() {
            Self::from_file(whole)?
        } else if index.exists() {
            Self::from_shards(folder, index)?
        } else {
            return Err(absent(folder));
        };
        if weights.places.contains_key(&format!("{PREFIX}{EMBEDDING}")) {
            weights.prefix = PREFIX;
        }
        Ok(weights)
    }

    fn from_file(path: PathBuf) -> Result<Self, ExchangeError> {
        let file = TensorFile::open(&path).map_err(ExchangeError::tensors(&path))?;
        let places = file.names().into_iter().map(|name| (name, 0)).collect();
        Ok(Self { files: vec![(path.clone(), file)], places, prefix: "", path })
    }

    fn from_shards(folder: &Path, path: PathBuf) -> Result<Self, ExchangeError> {
        let text = read_text(&path)?;
        let index: Index = serde_json::from_str(&text)
            .map_err(|error| ExchangeError::bad(&path, error.to_string()))?;
        let shards: BTreeSet<&String> = index.weight_map.values().collect();
        let shards: Vec<&String> = shards.into_iter().collect();
        if let Some(shard) = shards.iter().find(|shard| !is_file_name(shard)) {
            let reason = format!("`{shard}` is not the name of a file in this folder");
            return Err(ExchangeError::bad(&path, reason));
        }
        let open = |shard: &&String| {
            let path = folder.join(shard);
            let file = TensorFile::open(&path).map_err(ExchangeError::tensors(&path))?;
            Ok((path, file))
        };
        let files = shards.iter().map(open).collect::<Result<Vec<_>, ExchangeError>>()?;
        let mut places = BTreeMap::new();
        for (name, shard) in &index.weight_map {
            let place = shards.binary_search(&shard).expect("all shards were listed");
            if files[place].1.shape(name).is_none() {
                let reason = format!("tensor `{name}` is not in {shard}, where it should be");
                return Err(ExchangeError::bad(&path, reason));
            }
            places.insert(name.clone(), place);
        }
        Ok(Self { files, places, prefix: "", path })
    }

    /// Whether there is a tensor of this name, prefix included.
    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Checks that a tensor exists and has the expected shape.
    pub(super) fn check(&self, foreign: &Foreign) -> Result<(), ExchangeError> {
        let (name, needed) = (foreign.prefixed(self.prefix), foreign.shape.clone());
        let Some(&place) = self.places.get(&name) else {
            return Err(ExchangeError::MissingTensor { path: self.path.clone(), name, needed });
        };
        let (path, file) = &self.files[place];
        match file.shape(&name) {
            Some(found) if found != needed => Err(ExchangeError::MisshapenTensor {
                path: path.clone(),
                found: found.to_vec(),
                name,
                needed,
            }),
            _ => Ok(()),
        }
    }

    /// Refuses tensors that are neither in `known` (named without prefix) nor masks.
    pub(super) fn check_no_others(&self, known: &BTreeSet<String>) -> Result<(), ExchangeError> {
        for (name, place) in &self.places {
            let bare = name.strip_prefix(self.prefix).unwrap_or(name);
            if !known.contains(bare) && !is_mask(bare) && name != OUTPUT {
                let path = self.files[*place].0.clone();
                return Err(ExchangeError::UnknownTensor { path, name: name.clone() });
            }
        }
        Ok(())
    }

    /// The values of a checked tensor, in the layout of `f2`.
    pub(super) fn read(&self, foreign: &Foreign) -> Result<Vec<f32>, ExchangeError> {
        let name = foreign.prefixed(self.prefix);
        let (path, file) = &self.files[self.places[&name]];
        let values = file.parameter(&name).map_err(ExchangeError::tensors(path))?;
        Ok(match foreign.shape[..] {
            [rows, columns] if foreign.transposed => transpose(&values, rows, columns),
            _ => values,
        })
    }
}

/// The error for a folder without safetensors, which names weights in another format.
fn absent(folder: &Path) -> ExchangeError {
    let foreign = FOREIGN.iter().map(|name| folder.join(name)).find(|path| path.exists());
    match foreign {
        Some(path) => ExchangeError::ForeignWeights { path },
        None => ExchangeError::NotAFolder {
            path: folder.to_path_buf(),
            reason: format!("there is neither {WHOLE} nor {INDEX} in it"),
        },
    }
}
