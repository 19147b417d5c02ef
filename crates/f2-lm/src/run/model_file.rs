//! `model.json`: the shape of a saved model.

use std::io;
use std::path::Path;

use f2_files::{disk, regular_file};
use serde::{Deserialize, Serialize};

use super::checkpoint::SHAPE;
use crate::Error;
use crate::config::{ModelConfig, TrainConfig};
use crate::model::ModelShape;

/// The version of `model.json`.
const FORMAT: u32 = 1;

/// `model.json`: the shape of the decoder, as far as its tensors do not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelFile {
    format: u32,
    layers: usize,
    width: usize,
    heads: usize,
    feed_forward: usize,
    tied: bool,
    dropout: f64,
    positions: usize,
    vocabulary: usize,
    /// The number of frequency classes; 0 for the plain softmax.
    pub(super) classes: usize,
}

/// Read before the rest, so that a later version is reported as such, not as a missing field.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

impl ModelFile {
    pub(crate) fn new(shape: &ModelShape) -> Self {
        let model = &shape.model;
        Self {
            format: FORMAT,
            layers: model.layers,
            width: model.width,
            heads: model.heads,
            feed_forward: model.feed_forward,
            tied: model.tied,
            dropout: model.dropout,
            positions: shape.positions,
            vocabulary: shape.vocabulary,
            classes: shape.class_ends.len(),
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("plain numbers") + "\n";
        disk::write(&folder.join(SHAPE), text)
    }

    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(SHAPE);
        let text = f2_files::read_text(regular_file(&path)?)?;
        Self::from_json(&text).map_err(|reason| Error::BadCheckpoint { path, reason })
    }

    fn from_json(text: &str) -> Result<Self, String> {
        let Versioned { format } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if format != FORMAT {
            return Err(format!("its format is {format}, this program reads {FORMAT}"));
        }
        let file: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        file.check()?;
        Ok(file)
    }

    /// Refuses sizes no decoder can have.
    fn check(&self) -> Result<(), String> {
        let mut config = TrainConfig { model: self.model(), ..TrainConfig::default() };
        config.model.vocabulary = Some(self.vocabulary);
        (config.batch.sequence, config.batch.size) = (self.positions, 1);
        config.violation().map_or(Ok(()), Err)?;
        if self.classes > self.vocabulary {
            return Err(format!("{} classes of {} tokens", self.classes, self.vocabulary));
        }
        Ok(())
    }

    fn model(&self) -> ModelConfig {
        ModelConfig {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            tied: self.tied,
            dropout: self.dropout,
            ..ModelConfig::default()
        }
    }

    /// The shape, with its frequency classes; or why these do not fit.
    pub(super) fn shape(&self, class_ends: Vec<u32>) -> Result<ModelShape, String> {
        let last = class_ends.last().copied().unwrap_or(self.vocabulary as u32);
        if class_ends.len() != self.classes || last as usize != self.vocabulary {
            return Err(format!(
                "it cuts {last} tokens into {} classes, the model has {} in {}",
                class_ends.len(),
                self.vocabulary,
                self.classes
            ));
        }
        let Self { positions, vocabulary, .. } = *self;
        Ok(ModelShape { model: self.model(), positions, vocabulary, class_ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> ModelShape {
        let model = ModelConfig { layers: 3, dropout: 0.25, ..ModelConfig::default() };
        ModelShape { model, positions: 17, vocabulary: 90, class_ends: vec![4, 30, 90] }
    }

    #[test]
    fn a_shape_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        ModelFile::new(&shape()).write(folder.path()).unwrap();
        let read = ModelFile::read(folder.path()).unwrap();
        assert_eq!(read.shape(vec![4, 30, 90]).unwrap(), shape());
    }

    #[test]
    fn classes_of_another_model_are_refused() {
        let file = ModelFile::new(&shape());
        let refused = [vec![], vec![30, 90], vec![4, 30, 80]].map(|ends| file.shape(ends));
        let refused = refused.map(|refused| refused.unwrap_err());
        insta::assert_snapshot!(refused.join("\n"), @r"
        it cuts 90 tokens into 0 classes, the model has 90 in 3
        it cuts 90 tokens into 2 classes, the model has 90 in 3
        it cuts 80 tokens into 3 classes, the model has 90 in 3
        ");
    }

    #[test]
    fn sizes_that_no_model_has_are_refused() {
        let text = serde_json::to_string(&ModelFile::new(&shape())).unwrap();
        let refused = |from: &str, to: &str| {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            ModelFile::from_json(&changed).unwrap_err()
        };
        let refused = [
            refused("\"format\":1", "\"format\":7"),
            refused("\"heads\":4", "\"heads\":0"),
            refused("\"heads\":4", "\"heads\":5"),
            refused("\"vocabulary\":90", "\"vocabulary\":0"),
            refused("\"vocabulary\":90", "\"vocabulary\":2"),
            refused("\"tied\":false", "\"tied\":3"),
        ];
        insta::assert_snapshot!(refused.join("\n"));
    }
}
