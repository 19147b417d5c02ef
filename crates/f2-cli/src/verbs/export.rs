//! `f2 export`: a trained model out, to where other programs read it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use f2_lm::exchange::export;
use f2_lm::run::SavedModel;
use serde_json::json;

use super::flags::CheckpointChoice;
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

A plain model loads in `transformers` as GPT2LMHeadModel. Of an F² model the trunk loads as
GPT2Model; its head and classes are named tensors in f2_head.safetensors, and README.md in the
folder shows how to use them. Either way the tokenizer loads with AutoTokenizer.")]
pub(crate) struct Export {
    /// A run, one of its checkpoints, or a model folder.
    #[arg(value_name = "RUN")]
    model: PathBuf,
    /// The folder to write.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Whose format.
    #[arg(long, value_enum, default_value_t = Format::Hf)]
    format: Format,
    #[command(flatten)]
    checkpoint: CheckpointChoice,
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
        let parameters = model.decoder().layout.count();
        let bytes = (parameters * size_of::<f32>()) as u64;
        let progress = Progress::new("exporting", Some(bytes), Unit::Bytes);
        match self.format {
            Format::Hf => export(&model, &self.out, &mut |parameters| {
                progress.advance((parameters * size_of::<f32>()) as u64);
                !interrupt::asked()
            })?,
        }
        drop(progress);
        let class = if model.shape.class_ends.is_empty() { "GPT2LMHeadModel" } else { "GPT2Model" };
        let head = (class == "GPT2Model").then_some("f2_head.safetensors");
        output::print(&if self.json {
            let result = json!({
                "folder": self.out.display().to_string(),
                "from": model.folder.display().to_string(),
                "class": class,
                "head": head,
                "parameters": parameters,
            });
            format!("{result}\n")
        } else {
            let head = head.map_or_else(String::new, |file| format!("head and classes: {file}\n"));
            format!(
                "exported {} as {class} ({:.1} M parameters)\n{head}folder: {}\n",
                model.folder.display(),
                parameters as f64 / 1e6,
                self.out.display()
            )
        })
    }
}
