//! A Hugging Face folder as a model of ours.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use f2_classes::ClassSelection;
use f2_corpus::{Counts, Tokenizer};
use f2_engine::NamedParameter;
use f2_files::{StagedFolder, WriteError, disk};
use safetensors::tensor::Dtype;

use super::ExchangeError;
use super::config::Gpt2Config;
use super::files::{HEAD, check_is_free, read_text, read_tokenizer};
use super::head::F2HeadFile;
use super::names::{EMBEDDING, Foreign, OUTPUT, foreign};
use super::weights::Weights;
use crate::model::{Decoder, ModelShape};
use crate::run::ModelFile;
use crate::run::checkpoint::{CLASSES, COUNTS, MODEL, TOKENIZER};
use crate::tensor_file::{self, Planned, WriteFailure, float_bytes};

/// A Hugging Face folder whose every file was read or held against what it should be.
#[derive(Debug)]
pub struct ForeignModel {
    /// The decoder it holds.
    pub shape: ModelShape,
    /// Text to ids and back; its ids are rows of the embedding.
    pub tokenizer: Tokenizer,
    weights: Weights,
    head: Option<F2HeadFile>,
    /// Files of ours that an exported model brings back.
    ours: Vec<(&'static str, String)>,
}

impl ForeignModel {
    /// Opens a folder and checks all of it but the values of the tensors.
    pub fn open(folder: &Path) -> Result<Self, ExchangeError> {
        if !folder.is_dir() {
            let reason = if folder.exists() { "it is not a folder" } else { "it does not exist" };
            let path = folder.to_path_buf();
            return Err(ExchangeError::NotAFolder { path, reason: reason.to_owned() });
        }
        let config = Gpt2Config::read(folder)?;
        let weights = Weights::open(folder)?;
        let mut ours = Vec::new();
        let head_path = folder.join(HEAD);
        let (head, class_ends) = if head_path.exists() {
            let (ends, text) = read_classes(folder)?;
            ours.push((CLASSES, text));
            (Some(F2HeadFile::open(&head_path, &ends)?), ends)
        } else {
            (None, Vec::new())
        };
        let tied = match &head {
            Some(head) => config.asks_for_tying() && !head.has_tokens(),
            None => config.asks_for_tying() && !is_untied(&config, &weights)?,
        };
        let shape = config.shape(tied, class_ends);
        let tokenizer = read_tokenizer(folder, shape.vocabulary)?;
        ours.extend(read_counts(folder, shape.vocabulary)?.map(|text| (COUNTS, text)));
        let found = Self { shape, tokenizer, weights, head, ours };
        found.check_tensors()?;
        Ok(found)
    }

    /// Every tensor must be there in its shape, and no other.
    fn check_tensors(&self) -> Result<(), ExchangeError> {
        let mut known = BTreeSet::new();
        for named in Decoder::new(self.shape.clone()).layout.parameters() {
            match self.place(named) {
                Place::Gpt2(foreign) => {
                    self.weights.check(&foreign)?;
                    known.insert(foreign.name);
                }
                Place::Head(head) => head.check(named)?,
            }
        }
        self.weights.check_no_others(&known)
    }

    fn place(&self, named: &NamedParameter) -> Place<'_> {
        match (&self.head, foreign(named)) {
            (None, Some(foreign)) => Place::Gpt2(foreign),
            (Some(_), Some(foreign)) if foreign.name != OUTPUT => Place::Gpt2(foreign),
            (Some(head), _) => Place::Head(head),
            (None, None) => unreachable!("only an F² head has vectors no GPT-2 has"),
        }
    }

    fn read(&self, named: &NamedParameter) -> Result<Vec<f32>, ExchangeError> {
        match self.place(named) {
            Place::Gpt2(foreign) => self.weights.read(&foreign),
            Place::Head(head) => head.read(&named.name),
        }
    }

    /// How many parameters there are.
    pub fn parameters(&self) -> usize {
        Decoder::new(self.shape.clone()).layout.count()
    }

    /// Rows of the embedding that no token has.
    pub fn unused_rows(&self) -> usize {
        self.shape.vocabulary - self.tokenizer.vocabulary_size()
    }

    /// Writes it as a model of ours. `go_on` is told how many parameters were written, again and
    /// again, and may say no; then, and after any error, nothing is left.
    pub fn write(
        &self,
        out: &Path,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ExchangeError> {
        check_is_free(out)?;
        let staged = StagedFolder::create(out)?;
        self.write_tensors(&staged.path().join(MODEL), out, go_on)?;
        self.write_rest(staged.path()).map_err(WriteError::of(out))?;
        Ok(staged.publish()?)
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
            let values = self.read(&layout.parameters()[index])?;
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

/// Where the values of a parameter are.
enum Place<'a> {
    Gpt2(Foreign),
    Head(&'a F2HeadFile),
}

/// Whether there is an output matrix that is not the embedding, whatever the configuration says.
/// `transformers` decides it so as well.
fn is_untied(config: &Gpt2Config, weights: &Weights) -> Result<bool, ExchangeError> {
    if !weights.has_output() {
        return Ok(false);
    }
    let shape = config.shape(true, Vec::new());
    let shape = vec![shape.vocabulary, shape.model.width];
    let matrix = |name: &str| {
        let foreign = Foreign { name: name.to_owned(), shape: shape.clone(), transposed: false };
        weights.check(&foreign)?;
        weights.read(&foreign)
    };
    Ok(matrix(OUTPUT)? != matrix(EMBEDDING)?)
}

/// Where each class of an exported F² model ends, and the file that says so.
fn read_classes(folder: &Path) -> Result<(Vec<u32>, String), ExchangeError> {
    let path = folder.join(CLASSES);
    let text = read_text(&path)?;
    let selection = ClassSelection::load(&path)?;
    Ok((selection.classes().ends().iter().map(|end| *end as u32).collect(), text))
}

/// The counts of an exported model of ours, where there are any.
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
