//! `f2 demo`: the whole pipeline on one text.

use std::path::{Path, PathBuf};

use clap::Args;
use f2_experiment::{Corpora, CorpusSource, PlanPreset};
use f2_files::{WriteError, disk};

use super::reproduce::{Experiment, Study};
use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;

/// Run everything on a built-in text, or on your own: two models, their texts, a report.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 demo
  f2 demo --text my-novel.txt --out my-demo

It trains maximum likelihood and F² with equal budgets, lets both continue the same prefixes,
scores them against human text and writes report.html. If it is interrupted, the same command
resumes it. It is `f2 reproduce --preset demo` on that text. The built-in one is the King James
Bible as the crate bible-lib reads it: what follows a colon within a verse is missing, 650,000 words
remain.")]
pub(crate) struct Demo {
    /// Your own text instead of the built-in one; blank lines between documents.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// The folder for all results.
    #[arg(long, short, value_name = "FOLDER", default_value = "f2-demo")]
    out: PathBuf,
    /// How many steps to train each of the two models [default: the plan's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Outcome {
        let mut plan = PlanPreset::Demo.plan();
        plan.training.steps = self.steps.or(plan.training.steps);
        let text = match &self.text {
            Some(text) => text.clone(),
            None => {
                plan.title = Some("F² on the King James Bible".to_owned());
                write_builtin_text(&self.out)?
            }
        };
        let experiment = Experiment {
            plan,
            corpora: Corpora::new(CorpusSource::find(&[text])?, None)?,
            out: self.out,
            only: Vec::new(),
            device: self.device,
        };
        Study::of(experiment).run(self.json)
    }
}

fn write_builtin_text(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("king-james.txt");
    disk::create_folders(folder).map_err(WriteError::of(folder))?;
    f2_files::write_text_atomically(&path, &f2_corpus::builtin_text())?;
    Ok(path)
}
