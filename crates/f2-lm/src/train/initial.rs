use std::path::{Path, PathBuf};

use f2_engine::Device;

use super::Source;
use crate::Error;
use crate::config::ConfigLayers;
use crate::model::{Decoder, ModelShape, Network};
use crate::run::checkpoint::{self, CLASSES, RANKS, TOKENIZER};
use crate::run::{FileRecord, InitialRecord, Pick, SavedModel};

/// A trained model that a run starts from, in place of random values.
#[derive(Clone, Debug)]
pub struct InitialModel {
    model: SavedModel,
    record: InitialRecord,
}

impl InitialModel {
    /// Opens a run folder (its best checkpoint), one of its checkpoints, or a model's folder.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = SavedModel::open(path, Pick::Best)?;
        let sha256 = sha256(&model.folder.join(checkpoint::MODEL))?;
        let path = model.folder.canonicalize().unwrap_or_else(|_| model.folder.clone());
        Ok(Self { model, record: InitialRecord { path, sha256 } })
    }

    /// Opens the model a run was begun from once more.
    pub fn reopen(record: &InitialRecord) -> Result<Self, Error> {
        let initial = Self::open(&record.path)?;
        if initial.record.sha256 == record.sha256 {
            return Ok(initial);
        }
        let (path, found) = (record.path.clone(), initial.record.sha256);
        Err(Error::InitialModelChanged { path, found, expected: record.sha256.clone() })
    }

    /// What identifies it in the manifest of a run.
    pub fn record(&self) -> &InitialRecord {
        &self.record
    }

    /// The file of its frequency classes, where it has any.
    pub fn classes(&self) -> Option<PathBuf> {
        let classed = !self.model.shape.class_ends.is_empty();
        classed.then(|| self.model.folder.join(CLASSES))
    }

    /// Adds its settings to those of a run that starts from it: all of its own run's, or its shape
    /// where it lies by itself.
    pub fn settings(&self, layers: ConfigLayers) -> Result<ConfigLayers, Error> {
        let checkpoints = self.model.folder.parent().filter(|path| path.ends_with("checkpoints"));
        let config = checkpoints.and_then(Path::parent).map(|run| run.join("config.toml"));
        if let Some(config) = config.filter(|config| config.exists()) {
            return layers.file(&config);
        }
        let values = shape_values(&self.model.shape);
        let words = format!("the model in {}", self.model.folder.display());
        layers.set(values.iter().map(|(key, value)| (*key, value.as_str(), words.as_str())))
    }

    /// Refuses to start a decoder from it whose parameters are others, or mean others.
    pub fn check(&self, decoder: &Decoder, source: &Source) -> Result<(), Error> {
        let (have, need) = (shape_values(&self.model.shape), shape_values(&decoder.shape));
        let differs = have
            .into_iter()
            .zip(need)
            .find(|((key, have), (_, need))| *key != "model.dropout" && have != need);
        if let Some(((key, found), (_, needed))) = differs {
            let path = self.model.folder.clone();
            return Err(Error::InitialModelMismatch { path, key, found, needed });
        }
        let [found, needed] = [&self.model.shape, &decoder.shape].map(|shape| &shape.class_ends);
        if found != needed {
            let path = self.model.folder.clone();
            let [found, needed] = [found, needed].map(|ends| in_words(ends));
            return Err(Error::InitialClasses { path, found, needed });
        }
        self.check_vocabulary(source)
    }

    /// The same tokens must have the same ids.
    fn check_vocabulary(&self, source: &Source) -> Result<(), Error> {
        for name in [TOKENIZER, RANKS] {
            let paths = [self.model.folder.join(name), source.record.path.join(name)];
            let [found, expected] =
                paths.map(|path| path.exists().then(|| sha256(&path)).transpose());
            if found? != expected? {
                let (model, corpus) = (self.model.folder.clone(), source.record.path.clone());
                return Err(Error::InitialVocabulary { model, corpus });
            }
        }
        Ok(())
    }

    /// Puts its parameters into a network it was [checked](Self::check) for.
    pub fn load<D: Device>(&self, network: &mut Network<D>) -> Result<(), Error> {
        let Network { device, decoder, weights, .. } = network;
        checkpoint::load_model(&self.model.folder, device, &decoder.layout, weights)
    }
}

fn in_words(class_ends: &[u32]) -> String {
    if class_ends.is_empty() {
        return "no classes".to_owned();
    }
    let ends: Vec<String> = class_ends.iter().map(u32::to_string).collect();
    format!("classes that end at {}", ends.join(", "))
}

fn sha256(path: &Path) -> Result<String, Error> {
    let record = FileRecord::of(path)
        .map_err(|source| Error::ReadFile { path: path.to_path_buf(), source })?;
    Ok(record.sha256)
}

/// What decides a model's parameters, by the names of the settings that do.
fn shape_values(shape: &ModelShape) -> Vec<(&'static str, String)> {
    let model = &shape.model;
    vec![
        ("model.layers", model.layers.to_string()),
        ("model.width", model.width.to_string()),
        ("model.heads", model.heads.to_string()),
        ("model.feed_forward", model.feed_forward.to_string()),
        ("model.dropout", model.dropout.to_string()),
        ("model.tied", model.tied.to_string()),
        ("model.vocabulary", shape.vocabulary.to_string()),
        ("batch.sequence", shape.positions.to_string()),
    ]
}
