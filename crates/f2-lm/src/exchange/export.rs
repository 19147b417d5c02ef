//! Export of a model of `f2` as a folder of `transformers`.

use std::collections::HashMap;
use std::path::Path;

use f2_corpus::names::TOKENIZER;
use f2_corpus::{END_OF_TEXT, Ranks, Tokenizer};
use f2_engine::NamedParameter;
use f2_files::{WriteError, disk, regular_file};
use safetensors::tensor::Dtype;
use serde_json::json;

use super::ExchangeError;
use super::card::Card;
use super::config::{self, CONFIG};
use super::files::{CARD, GENERATION_CONFIG, TOKENIZER_CONFIG, check_is_free, publish};
use super::generation;
use super::names::{Foreign, PREFIX, foreign, transpose};
use super::remote;
use super::training::Training;
use crate::decode::Strategy;
use crate::model::Decoder;
use crate::run::SavedModel;
use crate::run::checkpoint::{CLASSES, COUNTS, MODEL, RANKS};
use crate::tensor_file::{self, Planned, TensorFile, WriteFailure, float_bytes};

/// Writes a model, with tokenizer and model card, as a folder `transformers` loads: a plain one as
/// a `GPT2LMHeadModel`, an F² model as an `F2ForCausalLM`, whose Python code is in the folder too.
/// `decoding` becomes the default of `generate` there. `go_on` is called before each tensor with
/// its number of parameters; if it returns false, or after an error, nothing is left on the disk.
pub fn export(
    model: &SavedModel,
    decoding: Option<&Strategy>,
    out: &Path,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(), ExchangeError> {
    check_is_free(out)?;
    let export = Export::open(model, decoding)?;
    publish(out, |folder| {
        export.write_tensors(folder, out, go_on)?;
        Ok(export.write_rest(folder).map_err(WriteError::of(out))?)
    })
}

/// A model that is being exported.
struct Export<'a> {
    model: &'a SavedModel,
    decoding: Option<&'a Strategy>,
    decoder: Decoder,
    tensors: TensorFile,
    /// Its ids are rows of the embedding.
    tokenizer: Tokenizer,
}

impl<'a> Export<'a> {
    fn open(model: &'a SavedModel, decoding: Option<&'a Strategy>) -> Result<Self, ExchangeError> {
        let path = model.folder.join(MODEL);
        let tensors = TensorFile::open(&path).map_err(ExchangeError::tensors(&path))?;
        let decoder = model.decoder();
        for named in decoder.layout.parameters() {
            check_shape(&path, &tensors, named)?;
        }
        Ok(Self { model, decoding, decoder, tensors, tokenizer: tokenizer(model)? })
    }

    fn is_f2(&self) -> bool {
        !self.model.shape.class_ends.is_empty()
    }

    fn write_tensors(
        &self,
        folder: &Path,
        out: &Path,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ExchangeError> {
        let parameters = self.decoder.layout.parameters();
        let planned: Vec<Planned> = parameters.iter().map(|named| self.planned(named)).collect();
        // `transformers` refuses files without it.
        let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        tensor_file::write(&folder.join("model.safetensors"), &planned, about, |index| {
            let values = self.read(&parameters[index])?;
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

    fn foreign(&self, named: &NamedParameter) -> Foreign {
        foreign(named, self.is_f2())
    }

    fn planned(&self, named: &NamedParameter) -> Planned {
        let foreign = self.foreign(named);
        Planned { name: foreign.prefixed(PREFIX), shape: foreign.shape, dtype: Dtype::F32 }
    }

    fn read(&self, named: &NamedParameter) -> Result<Vec<f32>, ExchangeError> {
        let path = self.model.folder.join(MODEL);
        let values = self.tensors.parameter(&named.name).map_err(ExchangeError::tensors(&path))?;
        let (rows, columns) = (named.parameter.rows, named.parameter.columns);
        let transposed = self.foreign(named).transposed;
        Ok(if transposed { transpose(&values, rows, columns) } else { values })
    }

    fn write_rest(&self, folder: &Path) -> std::io::Result<()> {
        let shape = &self.model.shape;
        let end = self.tokenizer.token_id(END_OF_TEXT);
        let pretty = |value| serde_json::to_string_pretty(&value).expect("plain JSON") + "\n";
        disk::write(&folder.join(CONFIG), pretty(config::describe(shape, end)))?;
        let generation = generation::describe(end, self.decoding, self.is_f2());
        let generation = pretty(generation.into());
        disk::write(&folder.join(GENERATION_CONFIG), generation)?;
        disk::write(&folder.join(TOKENIZER), self.tokenizer.to_json())?;
        let end = end.map(|_| END_OF_TEXT);
        let about_tokenizer = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": shape.positions,
            "bos_token": end,
            "eos_token": end,
            "pad_token": end,
        });
        disk::write(&folder.join(TOKENIZER_CONFIG), pretty(about_tokenizer))?;
        let parameters = self.decoder.layout.count();
        let training = Training::of(self.model);
        let card = Card {
            shape,
            parameters,
            training: &training,
            decoding: self.decoding,
            ends_texts: end.is_some(),
        };
        disk::write(&folder.join(CARD), card.text())?;
        if self.is_f2() {
            remote::write(folder)?;
        }
        for name in [CLASSES, COUNTS] {
            let path = self.model.folder.join(name);
            if path.exists() {
                disk::copy(&path, &folder.join(name))?;
            }
        }
        Ok(())
    }
}

fn check_shape(
    path: &Path,
    tensors: &TensorFile,
    named: &NamedParameter,
) -> Result<(), ExchangeError> {
    let (name, needed) = (named.name.clone(), named.shape.clone());
    match tensors.shape(&name) {
        Some(found) if found == needed => Ok(()),
        Some(found) => Err(ExchangeError::MisshapenTensor {
            path: path.to_path_buf(),
            found: found.to_vec(),
            name,
            needed,
        }),
        None => Err(ExchangeError::MissingTensor { path: path.to_path_buf(), name, needed }),
    }
}

/// The model's tokenizer, with the model's own ids.
fn tokenizer(model: &SavedModel) -> Result<Tokenizer, ExchangeError> {
    let tokenizer = Tokenizer::load(regular_file(&model.folder.join(TOKENIZER))?)?;
    let ranks = model.folder.join(RANKS);
    if !ranks.exists() {
        return Ok(tokenizer);
    }
    Ok(tokenizer.renamed(&Ranks::load(&ranks)?.rank_of_id())?)
}
