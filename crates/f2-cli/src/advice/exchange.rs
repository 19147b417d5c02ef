//! Advice on models that cannot be imported or exported.

use f2_lm::exchange::ExchangeError;

use crate::failure::{Failure, Kind, advice_on_writing};

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        let kind = match error {
            ExchangeError::Model(error) => return error.into(),
            ExchangeError::Tokenizer(error) => return error.into(),
            ExchangeError::Lock(error) => return error.into(),
            ExchangeError::Exists { .. } => Kind::Usage,
            ExchangeError::Write(_) => Kind::Device,
            ExchangeError::Interrupted => Kind::Interrupted,
            _ => Kind::Data,
        };
        Self::new(kind, &error).advise_if(advice(&error))
    }
}

fn advice(error: &ExchangeError) -> Option<String> {
    Some(match error {
        ExchangeError::Exists { .. } => "choose another folder, or remove this one".to_owned(),
        ExchangeError::Write(error) => advice_on_writing(error).to_owned(),
        ExchangeError::Read(_) | ExchangeError::NotAFolder { .. } => {
            "name a folder with config.json, model.safetensors \
             and tokenizer.json, as `save_pretrained` of `transformers` writes it"
                .to_owned()
        }
        ExchangeError::ForeignWeights { path } => {
            let folder = path.parent().unwrap_or(path).display();
            format!(
                "if you trust them, convert them once: python -c \"from transformers import \
                 GPT2LMHeadModel as M; M.from_pretrained('{folder}').save_pretrained('converted')\"; \
                 then copy the tokenizer's files into `converted`"
            )
        }
        ExchangeError::Architecture { .. } => {
            "give a model whose config.json says `\"model_type\": \"gpt2\"` and `GPT2LMHeadModel`, \
             or one that `f2 export` wrote"
                .to_owned()
        }
        ExchangeError::NoClasses { .. } => {
            "copy classes.json, and counts.json if there is one, from the folder the model was \
             loaded from: `save_pretrained` leaves them out; `f2_softmax.mefmax(counts).save(path)` \
             writes the classes of counts"
                .to_owned()
        }
        ExchangeError::Variant { .. } => {
            "its outputs would differ here, so it is not imported".to_owned()
        }
        ExchangeError::BadFile { .. }
        | ExchangeError::MissingTensor { .. }
        | ExchangeError::MisshapenTensor { .. }
        | ExchangeError::UnknownTensor { .. } => {
            "fetch or save the folder again; config.json and weights must belong together"
                .to_owned()
        }
        ExchangeError::TokenizerTooLarge { .. } => {
            "give the tokenizer the model was trained with, or resize the model's embedding"
                .to_owned()
        }
        ExchangeError::Interrupted => {
            "nothing was written; the same command starts again".to_owned()
        }
        _ => return None,
    })
}
