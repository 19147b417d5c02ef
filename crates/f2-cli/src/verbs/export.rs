//! `f2 export`: writes a trained model for other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use f2_lm::exchange::{class_name, export};
use f2_lm::run::SavedModel;
use serde_json::json;

use super::flags::{CheckpointChoice, DecodingChoice};
use crate::failure::Outcome;
use crate::progress::{Progress, Unit};
use crate::{interrupt, output};

/// Write a model in the format of another program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 export run --out exported
  f2 export run --checkpoint last --format hf --out exported
  f2 export run/checkpoints/step-500 --out exported

A plain model loads in `transformers` as GPT2LMHeadModel. An F² model brings the Python code of its
head: AutoModelForCausalLM.from_pretrained(DIR, trust_remote_code=True) gives the full posterior as
logits, and `generate` draws a class before each token. README.md in the folder shows how; the
tokenizer loads with AutoTokenizer. If the model has a decoding.toml, `generate` uses it unless
arguments override it.")]
pub(crate) struct Export {
    /// A run, one of its checkpoints, or a model folder.
    #[arg(value_name = "RUN")]
    model: PathBuf,
    /// The folder to write.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Hf)]
    format: Format,
    #[command(flatten)]
    checkpoint: CheckpointChoice,
    #[command(flatten)]
    decoding: DecodingChoice,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Hugging Face `transformers`.
    Hf,
}

impl Export {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        let model = SavedModel::open(&self.model, self.checkpoint.checkpoint)?;
        let decoding = self.decoding.of(&model)?;
        let parameters = model.decoder().layout.count();
        let bytes = (parameters * size_of::<f32>()) as u64;
        let progress = Progress::new("exporting", Some(bytes), Unit::Bytes);
        match self.format {
            Format::Hf => export(&model, decoding.as_ref(), &self.out, &mut |parameters| {
                progress.advance((parameters * size_of::<f32>()) as u64);
                !interrupt::asked()
            })?,
        }
        drop(progress);
        let class = class_name(&model.shape);
        let remote_code = !model.shape.class_ends.is_empty();
        output::print(&if self.json {
            let result = json!({
                "folder": self.out.display().to_string(),
                "from": model.folder.display().to_string(),
                "class": class,
                "remote_code": remote_code,
                "parameters": parameters,
            });
            format!("{result}\n")
        } else {
            let trust = if remote_code { "load with: trust_remote_code=True\n" } else { "" };
            format!(
                "exported {} as {class} ({:.1} M parameters)\n{trust}folder: {}\n",
                model.folder.display(),
                parameters as f64 / 1e6,
                self.out.display()
            )
        })
    }
}
