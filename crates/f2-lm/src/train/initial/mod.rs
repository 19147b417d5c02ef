//! A trained model that a run starts from, in place of random values: on its own corpus or, when
//! the tokens are the same and their order is not, transferred to another.

mod rows;
mod transfer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use f2_files::{FileRecord, ReadError};

use super::TrainingCorpus;
use crate::Error;
use crate::config::{ConfigLayers, Origin};
use crate::model::{Decoder, ModelShape};
use crate::run::checkpoint::{self, CLASSES};
use crate::run::{CHECKPOINTS, CONFIG, InitialRecord, Pick, SavedModel};

/// A trained model that a run starts from.
#[derive(Clone, Debug)]
pub struct InitialModel {
    model: SavedModel,
    record: InitialRecord,
    /// The model's row of each of the corpus's ranks; `None` if they are the same.
    rows: Option<Vec<u32>>,
}

impl InitialModel {
    /// Opens a run folder (its best checkpoint), one of its checkpoints, or a model's folder.
    /// If a corpus is given, it must have the same tokens as the model, in any order.
    pub fn open(path: &Path, corpus: Option<&TrainingCorpus>) -> Result<Self, Error> {
        let model = SavedModel::open(path, Pick::Best)?;
        let sha256 = sha256(&model.folder.join(checkpoint::MODEL))?;
        let path = model.folder.canonicalize().unwrap_or_else(|_| model.folder.clone());
        let rows = corpus.map(|corpus| rows::find(&model, corpus)).transpose()?.flatten();
        Ok(Self { model, record: InitialRecord { path, sha256 }, rows })
    }

    /// Reopens the model that a run started from.
    pub fn reopen(record: &InitialRecord, corpus: &TrainingCorpus) -> Result<Self, Error> {
        let initial = Self::open(&record.path, Some(corpus))?;
        if initial.record.sha256 == record.sha256 {
            return Ok(initial);
        }
        let (path, found) = (record.path.clone(), initial.record.sha256);
        Err(Error::InitialModelChanged { path, found, expected: record.sha256.clone() })
    }

    /// Its entry in the manifest of a run.
    pub fn record(&self) -> &InitialRecord {
        &self.record
    }

    /// Whether it was trained on another corpus, so that its tokens are in another order.
    pub fn is_transfer(&self) -> bool {
        self.rows.is_some()
    }

    /// The file of its frequency classes, if it has any and they are those of the corpus.
    pub fn classes(&self) -> Option<PathBuf> {
        let classed = !self.model.shape.class_ends.is_empty() && !self.is_transfer();
        classed.then(|| self.model.folder.join(CLASSES))
    }

    /// Adds its settings to those of a run that starts from it: all those of its own run, or only
    /// its shape if it has no run. A transfer unties the output matrix from the embedding.
    pub fn settings(&self, layers: ConfigLayers) -> Result<ConfigLayers, Error> {
        let checkpoints = self.model.folder.parent().filter(|path| path.ends_with(CHECKPOINTS));
        let config = checkpoints.and_then(Path::parent).map(|run| run.join(CONFIG));
        let words = format!("the model in {}", self.model.folder.display());
        let layers = match config.filter(|config| config.exists()) {
            Some(config) => layers.file(&config)?,
            None => {
                let values = shape_values(&self.model.shape);
                let values = values.iter().map(|(key, value)| (*key, &**value, &*words));
                layers.set(values)?
            }
        };
        let Some(rows) = &self.rows else { return Ok(layers) };
        let (vocabulary, words) = (rows.len().to_string(), "transfer to another corpus");
        layers.set([("model.tied", "false", words), ("model.vocabulary", &vocabulary, words)])
    }

    /// Refuses a decoder whose parameters it cannot provide. Windows may be shorter than the
    /// model's, a tied matrix may become two, and classes may differ. `origins` are those of the
    /// run's settings.
    pub fn check(
        &self,
        decoder: &Decoder,
        origins: &BTreeMap<String, Origin>,
    ) -> Result<(), Error> {
        let (have, need) = (shape_values(&self.model.shape), shape_values(&decoder.shape));
        let differs = have.into_iter().zip(need).find(|((key, have), (_, need))| match *key {
            "model.dropout" => false,
            "model.vocabulary" => !self.is_transfer() && have != need,
            "model.tied" => decoder.shape.model.tied && !self.model.shape.model.tied,
            "batch.sequence" => decoder.shape.positions > self.model.shape.positions,
            _ => have != need,
        });
        if let Some(((key, found), (_, needed))) = differs {
            let path = self.model.folder.clone();
            let origin = origins.get(key).cloned();
            return Err(Error::InitialModelMismatch { path, key, origin, found, needed });
        }
        let [found, needed] = [&self.model.shape, &decoder.shape].map(|shape| &shape.class_ends);
        if needed.is_empty() && !found.is_empty() {
            let path = self.model.folder.clone();
            let [found, needed] = [found, needed].map(|ends| in_words(ends));
            return Err(Error::InitialClasses { path, found, needed });
        }
        Ok(())
    }
}

fn in_words(class_ends: &[u32]) -> String {
    match class_ends.len() {
        0 => "no classes".to_owned(),
        classes => format!("{classes} classes"),
    }
}

fn sha256(path: &Path) -> Result<String, Error> {
    Ok(FileRecord::of(path).map_err(ReadError::of(path))?.sha256)
}

/// The settings that determine a model's parameters, by name.
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
