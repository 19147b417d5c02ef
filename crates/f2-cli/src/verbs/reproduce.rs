//! `f2 reproduce`: the paper as a plan of stages, on any text.

mod conduct;
mod dry_run;
mod experiment;
mod study;

use std::path::{Path, PathBuf};

use clap::Args;
use f2_experiment::{Corpora, CorpusSource, PaperPart, Plan, PlanPreset};

use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;
use crate::verbs::flags::{paper_part, plan_preset};
use crate::verbs::gpus::GpuChoice;
pub(super) use experiment::Experiment;
pub(super) use study::Study;

/// Reproduce the paper on your text: every table and figure, and a report.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 reproduce novels/ --out study --preset tiny
  f2 reproduce corpus --out study --preset small --only main,greedy
  f2 reproduce corpus --out study --plan mine.toml --dry-run
  f2 reproduce lyrics/ --out study --preset small --only transfer --pretrain wikipedia/
  f2 reproduce wikitext lyrics --preset paper,lyrics --pretrain news --out study
  f2 reproduce corpus --out study --preset paper --gpus all

Several corpora make one study, with the ranking over all of them; each has a plan of its own, in
the same order, or all have the same. Files and folders of text form one corpus.
Started again with the same --out it does only what is missing or changed; a study that was killed
and started again has the same tables. With --gpus stages that do not need each other run side by
side, one on each GPU. `f2 reproduce --preset tiny --show-plan` prints a plan to start your own
from.")]
pub(crate) struct Reproduce {
    /// Corpora that `f2 prepare` wrote, or files and folders of text.
    #[arg(value_name = "CORPUS", required_unless_present = "show_plan")]
    corpus: Vec<PathBuf>,
    /// The folder for all results.
    #[arg(long, short, value_name = "DIR", required_unless_present_any = ["show_plan", "dry_run"])]
    out: Option<PathBuf>,
    /// A plan that comes with the program, or one for each corpus.
    #[arg(long, value_name = "PRESET", default_value = "tiny", value_delimiter = ',')]
    #[arg(value_parser = plan_preset(), conflicts_with = "plan")]
    preset: Vec<PlanPreset>,
    /// A plan of your own, or one for each corpus.
    #[arg(long, value_name = "FILE.toml", value_delimiter = ',')]
    plan: Vec<PathBuf>,
    /// A corpus or text to pretrain on, for the transfer part; may be repeated. Of several corpora,
    /// only those whose plan has a `[transfer]` take part.
    #[arg(long, value_name = "TEXT_OR_CORPUS")]
    pretrain: Vec<PathBuf>,
    /// Do only these parts, and the stages they need.
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = paper_part())]
    only: Vec<PaperPart>,
    /// Print the stages, their time, disk space and memory, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan and do nothing.
    #[arg(long)]
    show_plan: bool,
    #[command(flatten)]
    pub(super) device: DeviceChoice,
    #[command(flatten)]
    gpus: GpuChoice,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Reproduce {
    pub(crate) fn run(self) -> Outcome {
        if self.show_plan {
            return self.print_plans();
        }
        let study = self.study()?;
        if self.dry_run { study.print_stages(self.json) } else { study.run(self.json) }
    }

    fn print_plans(&self) -> Outcome {
        if self.plan.is_empty() {
            let texts = self.preset.iter().map(|preset| preset.text());
            return crate::output::print(&texts.collect::<Vec<_>>().join("\n"));
        }
        let texts: Vec<String> =
            self.plan.iter().map(|path| f2_files::read_text(path)).collect::<Result<_, _>>()?;
        crate::output::print(&texts.join("\n"))
    }

    /// The corpora with their plans.
    fn study(&self) -> Result<Study, Failure> {
        let devices = self.device.each(self.gpus)?;
        let corpora = CorpusSource::find_all(&self.corpus)?;
        let plans = self.plans(corpora.len())?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("."));
        let several = corpora.len() > 1;
        let names: Vec<String> = corpora.iter().map(CorpusSource::name).collect();
        check_names(&names)?;
        let mut experiments = Vec::new();
        for ((main, name), plan) in corpora.into_iter().zip(&names).zip(plans) {
            let pretraining = self.pretraining(&plan, several)?;
            experiments.push(Experiment {
                corpora: Corpora::new(main, pretraining)?,
                out: if several { folder_of(&out, name) } else { out.clone() },
                only: self.only.clone(),
                device: self.device,
                plan,
            });
        }
        Ok(Study { experiments, out, devices })
    }

    /// A plan for each corpus.
    fn plans(&self, corpora: usize) -> Result<Vec<Plan>, Failure> {
        let plans: Vec<Plan> = if self.plan.is_empty() {
            self.preset.iter().map(|preset| preset.plan()).collect()
        } else {
            self.plan.iter().map(|path| Plan::load(path)).collect::<Result<_, _>>()?
        };
        match plans.as_slice() {
            [one] => Ok(vec![one.clone(); corpora]),
            _ if plans.len() == corpora => Ok(plans),
            _ => Err(Failure::usage(format!(
                "there are {} plans for {}",
                plans.len(),
                if corpora == 1 { "one corpus".to_owned() } else { format!("{corpora} corpora") }
            ))
            .advise(
                "name one plan for all, or one for each corpus in the same order; files and \
                 folders of text form one corpus, and `f2 prepare` makes corpora of them",
            )),
        }
    }

    /// The text to pretrain on, if one is named and the requested parts need it. Of several
    /// corpora, only those whose plan has a transfer take part.
    fn pretraining(&self, plan: &Plan, several: bool) -> Result<Option<CorpusSource>, Failure> {
        let asked = self.only.is_empty() || self.only.contains(&PaperPart::Transfer);
        if !asked || (several && plan.transfer.is_none()) {
            return Ok(None);
        }
        let planned = plan.transfer.as_ref().map_or(&[][..], |transfer| &transfer.pretrain);
        let named = if self.pretrain.is_empty() { planned } else { &self.pretrain };
        if !named.is_empty() {
            return Ok(Some(CorpusSource::find(named)?));
        }
        if self.only.contains(&PaperPart::Transfer) {
            return Err(Failure::usage("there is no text to pretrain on before the transfer")
                .advise(
                    "name one with `--pretrain TEXT_OR_CORPUS`, or in the plan by `pretrain` in \
                     `[transfer]`",
                ));
        }
        Ok(None)
    }
}

/// The folder for the experiment on one of several corpora.
fn folder_of(out: &Path, corpus: &str) -> PathBuf {
    out.join("corpora").join(corpus)
}

/// Refuses two corpora of the same name, which tables could not tell apart.
fn check_names(names: &[String]) -> Outcome {
    let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
    match twice {
        None => Ok(()),
        Some((_, name)) => Err(Failure::usage(format!("two corpora are called {name}"))
            .advise("name their folders differently: tables tell corpora apart by these names")),
    }
}
