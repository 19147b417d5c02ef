//! `f2 reproduce`: the paper as a plan of stages, on any text.

mod conduct;
mod dry_run;
mod experiment;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use f2_experiment::{Part, Plan, PlanPreset, TextSource, Texts};

use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;
pub(super) use experiment::Experiment;

/// Reproduce the paper on your text: every table and figure, and a report.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 reproduce novels/ --out study --preset tiny
  f2 reproduce corpus --out study --preset small --only main,greedy
  f2 reproduce corpus --out study --plan mine.toml --dry-run
  f2 reproduce lyrics/ --out study --preset small --only transfer --pretrain wikipedia/

Started again with the same --out it does only what is missing or changed; killed anywhere, it ends
in the same tables. `f2 reproduce --preset tiny --show-plan` prints a plan to begin your own with.")]
pub(crate) struct Reproduce {
    /// A corpus that `f2 prepare` wrote, or files and folders of text.
    #[arg(value_name = "CORPUS", required_unless_present = "show_plan")]
    corpus: Vec<PathBuf>,
    /// The folder for everything that is made.
    #[arg(long, short, value_name = "DIR", required_unless_present_any = ["show_plan", "dry_run"])]
    out: Option<PathBuf>,
    /// A plan that comes with the program.
    #[arg(long, value_enum, default_value = "tiny", conflicts_with = "plan")]
    preset: PresetName,
    /// A plan of your own.
    #[arg(long, value_name = "FILE.toml")]
    plan: Option<PathBuf>,
    /// A corpus or text to pretrain on, for the transfer part; may be repeated.
    #[arg(long, value_name = "TEXT_OR_CORPUS")]
    pretrain: Vec<PathBuf>,
    /// Do only these parts, and what they need.
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = part_parser())]
    only: Vec<Part>,
    /// Print the stages, their time and their disk space, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan and do nothing.
    #[arg(long)]
    show_plan: bool,
    #[command(flatten)]
    device: DeviceChoice,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetName {
    /// Two models, minutes on two cores.
    Demo,
    /// Everything, in minutes: to see it work.
    Tiny,
    /// Everything, at a size that shows the effects: a day on two cores, minutes on a GPU.
    Small,
    /// The paper's full settings, for a GPU.
    Paper,
}

impl From<PresetName> for PlanPreset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Demo => Self::Demo,
            PresetName::Tiny => Self::Tiny,
            PresetName::Small => Self::Small,
            PresetName::Paper => Self::Paper,
        }
    }
}

fn part_parser() -> impl clap::builder::TypedValueParser<Value = Part> {
    PossibleValuesParser::new(Part::ALL.map(Part::name)).map(|name| {
        let part = Part::ALL.into_iter().find(|part| part.name() == name);
        part.expect("only names of parts come through")
    })
}

impl Reproduce {
    pub(crate) fn run(self) -> Outcome {
        let preset = PlanPreset::from(self.preset);
        if self.show_plan {
            let text = match &self.plan {
                Some(path) => f2_files::read_text(path)?,
                None => preset.text().to_owned(),
            };
            return crate::output::print(&text);
        }
        let plan = match &self.plan {
            Some(path) => Plan::load(path)?,
            None => preset.plan(),
        };
        let texts = Texts::new(TextSource::find(&self.corpus)?, self.pretraining(&plan)?)?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("."));
        let experiment = Experiment { plan, texts, out, only: self.only, device: self.device };
        if self.dry_run { experiment.print_stages(self.json) } else { experiment.run(self.json) }
    }

    /// The text to pretrain on, where one is named and the parts asked for need it.
    fn pretraining(&self, plan: &Plan) -> Result<Option<TextSource>, Failure> {
        if !self.only.is_empty() && !self.only.contains(&Part::Transfer) {
            return Ok(None);
        }
        let planned = plan.transfer.as_ref().map_or(&[][..], |transfer| &transfer.pretrain);
        let named = if self.pretrain.is_empty() { planned } else { &self.pretrain };
        if !named.is_empty() {
            return Ok(Some(TextSource::find(named)?));
        }
        if self.only.contains(&Part::Transfer) {
            return Err(Failure::usage("there is no text to pretrain on before the transfer")
                .advise(
                    "name one with `--pretrain TEXT_OR_CORPUS`, or in the plan by `pretrain` in \
                     `[transfer]`",
                ));
        }
        Ok(None)
    }
}
