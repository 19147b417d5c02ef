//! A model of ours as a Hugging Face folder.

use std::collections::HashMap;
use std::path::Path;

use f2_corpus::{END_OF_TEXT, Ranks, Tokenizer};
use f2_engine::NamedParameter;
use f2_files::{StagedFolder, WriteError, disk};
use safetensors::tensor::Dtype;
use serde_json::json;

use super::ExchangeError;
use super::card;
use super::config::{self, CONFIG};
use super::files::{CARD, HEAD, TOKENIZER, TOKENIZER_CONFIG, check_is_free};
use super::head::CLASS_ENDS;
use super::names::{Foreign, OUTPUT, PREFIX, foreign, transpose};
use crate::model::Decoder;
use crate::run::SavedModel;
use crate::run::checkpoint::{CLASSES, COUNTS, MODEL, RANKS};
use crate::tensor_file::{self, Planned, TensorFile, WriteFailure, float_bytes};

/// Writes a model as a folder `transformers` loads: a plain one as a `GPT2LMHeadModel`, an F²
/// model's trunk as a `GPT2Model` with its head in a file of its own; tokenizer and model card
/// beside. `go_on` is told how many parameters were written, again and again, and may say no;
/// then, and after any error, nothing is left.
pub fn export(
    model: &SavedModel,
    out: &Path,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(), ExchangeError> {
    check_is_free(out)?;
    let export = Export::open(model)?;
    let staged = StagedFolder::create(out)?;
    export.write_tensors(staged.path(), out, go_on)?;
    export.write_rest(staged.path()).map_err(WriteError::of(out))?;
    Ok(staged.publish()?)
}

/// A model being exported.
struct Export<'a> {
    model: &'a SavedModel,
    decoder: Decoder,
    tensors: TensorFile,
    /// Its ids are rows of the embedding.
    tokenizer: Tokenizer,
}

/// A tensor to be written, and the parameter it is made of; none for the ends of the classes.
type Entry<'a> = (Planned, Option<(&'a NamedParameter, bool)>);

impl<'a> Export<'a> {
    fn open(model: &'a SavedModel) -> Result<Self, ExchangeError> {
        let path = model.folder.join(MODEL);
        let tensors = TensorFile::open(&path).map_err(ExchangeError::tensors(&path))?;
        let decoder = model.decoder();
        for named in decoder.layout.parameters() {
            check_shape(&path, &tensors, named)?;
        }
        Ok(Self { model, decoder, tensors, tokenizer: tokenizer(model)? })
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
        let (gpt2, head) = self.entries();
        // What `transformers` asks of every file it reads.
        let about = || HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let mut write = |name: &str, entries: Vec<Entry<'_>>| {
            let (planned, made_of): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            tensor_file::write(&folder.join(name), &planned, about(), |index| {
                let bytes = match made_of[index] {
                    Some((named, transposed)) => float_bytes(&self.read(named, transposed)?),
                    None => self.class_end_bytes(),
                };
                if go_on(bytes.len() / size_of::<f32>()) {
                    Ok(bytes)
                } else {
                    Err(ExchangeError::Interrupted)
                }
            })
            .map_err(|failure| match failure {
                WriteFailure::Disk(source) => WriteError::of(out)(source).into(),
                WriteFailure::Fetch(error) => error,
            })
        };
        write("model.safetensors", gpt2)?;
        if self.is_f2() { write(HEAD, head) } else { Ok(()) }
    }

    /// The tensors of the GPT-2, and those of an F² head.
    fn entries(&self) -> (Vec<Entry<'_>>, Vec<Entry<'_>>) {
        let (mut gpt2, mut head) = (Vec::new(), Vec::new());
        for named in self.decoder.layout.parameters() {
            match foreign(named) {
                Some(foreign) if !(self.is_f2() && foreign.name == OUTPUT) => {
                    gpt2.push(self.gpt2_entry(named, &foreign));
                }
                _ => head.push((float_tensor(&named.name, &named.shape), Some((named, false)))),
            }
        }
        let shape = vec![self.model.shape.class_ends.len()];
        head.push((Planned { name: CLASS_ENDS.to_owned(), shape, dtype: Dtype::I64 }, None));
        (gpt2, head)
    }

    fn gpt2_entry<'b>(&self, named: &'b NamedParameter, foreign: &Foreign) -> Entry<'b> {
        let name = foreign.prefixed(if self.is_f2() { "" } else { PREFIX });
        (float_tensor(&name, &foreign.shape), Some((named, foreign.transposed)))
    }

    fn read(&self, named: &NamedParameter, transposed: bool) -> Result<Vec<f32>, ExchangeError> {
        let path = self.model.folder.join(MODEL);
        let values = self.tensors.parameter(&named.name).map_err(ExchangeError::tensors(&path))?;
        let (rows, columns) = (named.parameter.rows, named.parameter.columns);
        Ok(if transposed { transpose(&values, rows, columns) } else { values })
    }

    fn class_end_bytes(&self) -> Vec<u8> {
        let ends = self.model.shape.class_ends.iter();
        ends.flat_map(|end| i64::from(*end).to_le_bytes()).collect()
    }

    fn write_rest(&self, folder: &Path) -> std::io::Result<()> {
        let shape = &self.model.shape;
        let end = self.tokenizer.token_id(END_OF_TEXT);
        let pretty = |value| serde_json::to_string_pretty(&value).expect("plain JSON") + "\n";
        disk::write(&folder.join(CONFIG), pretty(config::describe(shape, end)))?;
        disk::write(&folder.join(TOKENIZER), self.tokenizer.to_json())?;
        let end = end.map(|_| END_OF_TEXT);
        let about_tokenizer = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": shape.positions,
            "bos_token": end,
            "eos_token": end,
        });
        disk::write(&folder.join(TOKENIZER_CONFIG), pretty(about_tokenizer))?;
        let parameters = self.decoder.layout.count();
        disk::write(&folder.join(CARD), card::write(shape, parameters))?;
        for name in [CLASSES, COUNTS] {
            let path = self.model.folder.join(name);
            if path.exists() {
                disk::copy(&path, &folder.join(name))?;
            }
        }
        Ok(())
    }
}

fn float_tensor(name: &str, shape: &[usize]) -> Planned {
    Planned { name: name.to_owned(), shape: shape.to_vec(), dtype: Dtype::F32 }
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
    let tokenizer = Tokenizer::load(&model.folder.join(TOKENIZER))?;
    let ranks = model.folder.join(RANKS);
    if !ranks.exists() {
        return Ok(tokenizer);
    }
    Ok(tokenizer.renamed(&Ranks::load(&ranks)?.rank_of_id())?)
}
