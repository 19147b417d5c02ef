//! Advice on errors of the hub.

use f2_hub::Error;

use crate::failure::{Failure, Kind};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Read(error) => return error.into(),
            Error::Write(error) => return error.into(),
            Error::Name { .. } => Kind::Usage,
            Error::Unreachable { .. } => Kind::Device,
            Error::Interrupted { .. } => Kind::Interrupted,
            _ => Kind::Data,
        };
        Self::new(kind, &error).advise(advice(&error))
    }
}

fn advice(error: &Error) -> &'static str {
    match error {
        Error::Name { .. } => {
            "such as `gpt2`, `owner/name@revision`, `hf://datasets/owner/name/folder`"
        }
        Error::NotCached { .. } => {
            "name a folder, or download it on a machine with a network and copy the cache of \
             Hugging Face (HF_HOME)"
        }
        Error::Refused { status: 401 | 403 | 404, .. } => {
            "check the name; for one that is not public set HF_TOKEN"
        }
        Error::NothingWanted { .. } => {
            "a model has config.json, model.safetensors and tokenizer.json; text is .txt, .jsonl, \
             .tokens or .parquet"
        }
        Error::Unreachable { .. } | Error::Refused { .. } => {
            "try again, what has arrived is kept; another hub is named by HF_ENDPOINT"
        }
        Error::Answer { .. } => {
            "check HF_ENDPOINT: it must be a server with the interface of huggingface.co"
        }
        Error::Damaged { .. } => {
            "try again; if it persists, the hub or a proxy on the way is at fault"
        }
        _ => "what has arrived is kept; the same command continues",
    }
}
