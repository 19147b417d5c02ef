//! `f2 import`: from a GPT-2 of Hugging Face to a model folder.

use std::path::{Path, PathBuf};

use clap::Args;
use f2_lm::exchange::{ExchangeError, ForeignModel, check_is_free};
use serde_json::json;

use crate::failure::Outcome;
use crate::hub::model_folder;
use crate::progress::{Progress, Unit};
use crate::{interrupt, output};

/// Import a GPT-2 of Hugging Face: a folder, or a name on its hub.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 import gpt2 --out models/gpt2
  f2 import openai-community/gpt2-medium@main --out models/medium
  f2 prepare reviews.txt --tokenizer models/gpt2/tokenizer.json --out corpus
  f2 classes corpus
  f2 train corpus --init models/gpt2 --objective f2 --out run

MODEL is a folder, or else a name on the hub: found in the cache of Hugging Face (HF_HOME), or
downloaded into it (HF_ENDPOINT, HF_TOKEN; HF_HUB_OFFLINE=1 forbids it), with resuming and a
verified hash. It holds config.json, model.safetensors (or shards and model.safetensors.index.json),
and tokenizer.json (or vocab.json and merges.txt). Any size of GPT-2, tied or untied, in single,
half or bfloat16 precision; a folder that `f2 export` wrote is restored as it was.")]
pub(crate) struct Import {
    /// The folder `transformers` saved, or a name on the Hugging Face hub.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The model folder to write.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        // Checked before gigabytes are fetched.
        check_is_free(&self.out)?;
        let opens = |folder: &Path| match ForeignModel::open(folder) {
            Err(ExchangeError::Read(_) | ExchangeError::NotAFolder { .. }) => false,
            // Other errors are reported once, below.
            _ => true,
        };
        let model = ForeignModel::open(&model_folder(&self.model, opens)?)?;
        let bytes = (model.parameters() * size_of::<f32>()) as u64;
        let progress = Progress::new("importing", Some(bytes), Unit::Bytes);
        model.write(&self.out, &mut |parameters| {
            progress.advance((parameters * size_of::<f32>()) as u64);
            !interrupt::asked()
        })?;
        drop(progress);
        if model.unused_rows() > 0 {
            remark!(
                "note: {} rows of the embedding belong to no token; they are kept",
                model.unused_rows()
            );
        }
        output::print(&if self.json { self.to_json(&model) } else { self.to_text(&model) })
    }

    fn to_json(&self, model: &ForeignModel) -> String {
        let shape = &model.shape;
        let result = json!({
            "model": self.out.display().to_string(),
            "layers": shape.model.layers,
            "width": shape.model.width,
            "heads": shape.model.heads,
            "feed_forward": shape.model.feed_forward,
            "positions": shape.positions,
            "vocabulary": shape.vocabulary,
            "tokens": model.tokenizer.vocabulary_size(),
            "tied": shape.model.tied,
            "classes": shape.class_ends.len(),
            "parameters": model.parameters(),
        });
        format!("{result}\n")
    }

    fn to_text(&self, model: &ForeignModel) -> String {
        let shape = &model.shape;
        let head = match shape.class_ends.len() {
            0 => "plain softmax".to_owned(),
            classes => format!("{classes} frequency classes"),
        };
        format!(
            "{} layers, width {}, {} heads, {} positions, vocabulary {}, {}, {head}\n\
             parameters: {:.1} M ({})\nmodel: {}\n",
            shape.model.layers,
            shape.model.width,
            shape.model.heads,
            shape.positions,
            shape.vocabulary,
            if shape.model.tied { "tied" } else { "untied" },
            model.parameters() as f64 / 1e6,
            model.parameters(),
            self.out.display()
        )
    }
}
