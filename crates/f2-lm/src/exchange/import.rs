//! Import of a folder of `transformers` as a model of `f2`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use f2_classes::ClassSelection;
use f2_corpus::{Counts, Tokenizer};
use f2_engine::NamedParameter;
use f2_files::{WriteError, disk};
use safetensors::tensor::Dtype;

use super::ExchangeError;
use super::config::Gpt2Config;
use super::files::{publish, read_text, read_tokenizer};
use super::names::{EMBEDDING, F2_TOKENS, Foreign, OUTPUT, foreign};
use super::weights::Weights;
use crate::model::{Decoder, ModelShape};
use crate::run::ModelFile;
use crate::run::checkpoint::{CLASSES, COUNTS, MODEL, TOKENIZER};
use crate::tensor_file::{self, Planned, WriteFailure, float_bytes};

/// A Hugging Face folder, checked except for the values of the tensors.
#[derive(Debug)]
pub struct ForeignModel {
    /// The shape of its decoder.
    pub shape: ModelShape,
    /// The tokenizer, whose ids are rows of the embedding.
    pub tokenizer: Tokenizer,
    weights: Weights,
    /// The files of `f2` in an exported model: name and text.
    ours: Vec<(&'static str, String)>,
}

impl ForeignModel {
    /// Opens a folder and checks it, except for the values of the tensors.
    pub fn open(folder: &Path) -> Result<Self, ExchangeError> {
        if !folder.is_dir() {
            let reason = if folder.exists() { "it is not a folder" } else { "it does not exist" };
            let path = folder.to_path_buf();
            return Err(ExchangeError::NotAFolder { path, reason: reason.to_owned() });
        }
        let config = Gpt2Config::read(folder)?;
        let weights = Weights::open(folder)?;
        let mut ours = Vec::new();
        if config.is_f2() {
            ours.push((CLASSES, read_classes(folder, config.class_ends())?));
        }
        let shape = config.shape(is_tied(&config, &weights)?);
        let tokenizer = read_tokenizer(folder, shape.vocabulary)?;
        ours.extend(read_counts(folder, shape.vocabulary)?.map(|text| (COUNTS, text)));
        let found = Self { shape, tokenizer, weights, ours };
        found.check_tensors()?;
        Ok(found)
    }

    /// Checks that every tensor exists in its shape, and no other.
    fn check_tensors(&self) -> Result<(), ExchangeError> {
        let mut known = BTreeSet::new();
        for named in Decoder::new(self.shape.clone()).layout.parameters() {
            let foreign = self.foreign(named);
            self.weights.check(&foreign)?;
            known.insert(foreign.name);
        }
        self.weights.check_no_others(&known)
    }

    fn foreign(&self, named: &NamedParameter) -> Foreign {
        foreign(named, !self.shape.class_ends.is_empty())
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        Decoder::new(self.shape.clone()).layout.count()
    }

    /// The number of rows of the embedding that belong to no token.
    pub fn unused_rows(&self) -> usize {
        self.shape.vocabulary - self.tokenizer.vocabulary_size()
    }

    /// Writes it as a model of `f2`. `go_on` is called before each tensor with its number of
    /// parameters; if it returns false, or after an error, nothing is left on the disk.
    pub fn write(
        &self,
        out: &Path,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ExchangeError> {
        publish(out, |folder| {
            self.write_tensors(&folder.join(MODEL), out, go_on)?;
            Ok(self.write_rest(folder).map_err(WriteError::of(out))?)
        })
    }

    fn write_tensors(
        &self,
        path: &Path,
        out: &Path,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ExchangeError> {
        let layout = Decoder::new(self.shape.clone()).layout;
        let plan = |named: &NamedParameter| Planned {
            name: named.name.clone(),
            shape: named.shape.clone(),
            dtype: Dtype::F32,
        };
        let planned: Vec<Planned> = layout.parameters().iter().map(plan).collect();
        let about = HashMap::from([("format".to_owned(), "f2".to_owned())]);
        tensor_file::write(path, &planned, about, |index| {
            let values = self.weights.read(&self.foreign(&layout.parameters()[index]))?;
            if go_on(values.len()) {
                Ok(float_bytes(&values))
            } else {
                Err(ExchangeError::Interrupted)
            }
        })
        .map_err(|failure| match failure {
            WriteFailure::Disk(source) => WriteError::of(out)(source).into(),
            WriteFailure::Fetch(error) => error,
        })
    }

    fn write_rest(&self, folder: &Path) -> std::io::Result<()> {
        ModelFile::new(&self.shape).write(folder)?;
        disk::write(&folder.join(TOKENIZER), self.tokenizer.to_json())?;
        self.ours.iter().try_for_each(|(name, text)| disk::write(&folder.join(name), text))
    }
}

/// Whether the token vectors of the head are those of the embedding.
fn is_tied(config: &Gpt2Config, weights: &Weights) -> Result<bool, ExchangeError> {
    let asked = config.asks_for_tying();
    if config.is_f2() {
        return Ok(asked && !weights.has(F2_TOKENS));
    }
    // An output matrix that differs is kept regardless of the configuration, as in `transformers`.
    Ok(asked && !has_own_output(config, weights)?)
}

/// Whether a plain model stores an output matrix with other values than the embedding's.
fn has_own_output(config: &Gpt2Config, weights: &Weights) -> Result<bool, ExchangeError> {
    if !weights.has(OUTPUT) {
        return Ok(false);
    }
    let shape = config.shape(true);
    let shape = vec![shape.vocabulary, shape.model.width];
    let matrix = |name: &str| {
        let foreign = Foreign { name: name.to_owned(), shape: shape.clone(), transposed: false };
        weights.check(&foreign)?;
        weights.read(&foreign)
    };
    Ok(matrix(OUTPUT)? != matrix(EMBEDDING)?)
}

/// The text of an F² model's `classes.json`, whose classes must be those of the configuration.
fn read_classes(folder: &Path, ends: &[u32]) -> Result<String, ExchangeError> {
    let path = folder.join(CLASSES);
    if !path.exists() {
        return Err(ExchangeError::NoClasses { path });
    }
    let text = read_text(&path)?;
    let selection = ClassSelection::load(&path)?;
    if selection.classes().ends().iter().copied().eq(ends.iter().map(|end| *end as usize)) {
        Ok(text)
    } else {
        let reason = "its classes are not the `class_ends` of config.json";
        Err(ExchangeError::bad(&path, reason))
    }
}

/// The text of an exported model's `counts.json`, if there is one.
fn read_counts(folder: &Path, vocabulary: usize) -> Result<Option<String>, ExchangeError> {
    let path = folder.join(COUNTS);
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path)?;
    let counted = Counts::load(&path)?.counts.len();
    if counted != vocabulary {
        let reason = format!("it counts {counted} tokens, the model has {vocabulary}");
        return Err(ExchangeError::bad(&path, reason));
    }
    Ok(Some(text))
}
