//! `f2 train`: from a corpus to a run folder.

mod curve;
mod dry_run;
mod ranks;
mod request;
mod show_config;
mod watch;

use std::path::{Path, PathBuf};

use clap::Args;
use f2_engine::Device;
use f2_experiment::TrainTask;
use f2_lm::batch::{Shortened, TokenSource as _};
use f2_lm::run::CHECKPOINTS;
use f2_lm::run::checkpoint::{self, TrainingState};
use f2_lm::train::{Ending, InitialModel, NewRun, PreparedRun, Ranks, ResumedRun, TrainingCorpus};
use serde_json::json;

use crate::failure::{Failure, Kind, Outcome};
use crate::verbs::device::DeviceChoice;
use crate::verbs::gpus::GpuChoice;
use crate::{interrupt, output};
use request::Settings;
use watch::Watch;

/// Seconds that ranks wait for each other by default.
const RANK_TIMEOUT: u64 = 60;

/// Train a model on a prepared corpus, with a plain or a frequency factorised softmax.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 train corpus --out run --preset demo
  f2 train corpus --out run --preset wikitext103 --objective mle --epochs 2
  f2 train corpus --out run --config mine.toml --set model.layers=6 --max-minutes 30
  f2 train corpus --out tuned --objective face --init run
  f2 train reviews --out transferred --objective f2 --init models/gpt2 --set batch.sequence=256
  f2 train --resume run
  f2 train corpus --out run --preset wikitext103 --gpus 4
  torchrun --nproc-per-node 8 --no-python f2 train corpus --out run --preset wikitext103
  f2 train --preset wikitext103 --dry-run
  f2 train --preset demo --set model.layers=6 --show-config

Settings: a flag wins over the file, the file over the preset, the preset over the default;
docs/settings.md explains each, --show-config prints the resulting values. Started by torchrun, srun
or mpirun, each process is a rank and takes the GPU of its local rank; docs/scaling.md explains it.
On Ctrl-C, `kill` or a closed connection the step is finished and a checkpoint saved; a second
signal ends at once.")]
pub(crate) struct Train {
    /// The corpus folder `f2 prepare` wrote.
    #[arg(value_name = "CORPUS", required_unless_present_any = ["resume", "dry_run", "show_config"])]
    corpus: Option<PathBuf>,
    /// The run folder to write.
    #[arg(long, short, value_name = "RUN")]
    #[arg(required_unless_present_any = ["resume", "dry_run", "show_config"])]
    out: Option<PathBuf>,
    /// Start from this trained model, with its settings: a run, one of its checkpoints, or a folder
    /// that `f2 import` wrote. A model of another corpus is transferred if the tokenizer is the
    /// same.
    #[arg(long, value_name = "MODEL", conflicts_with = "resume")]
    init: Option<PathBuf>,
    /// Resume this run, or from this checkpoint of one.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "preset"])]
    resume: Option<PathBuf>,
    /// A setting, or a section of settings, that may differ from those of the resumed run.
    #[arg(long, value_name = "KEY", requires = "resume")]
    allow: Vec<String>,
    /// Frequency classes [default: classes.json in CORPUS].
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    device: DeviceChoice,
    #[command(flatten)]
    gpus: GpuChoice,
    /// Seconds that ranks wait for each other at the start.
    #[arg(long, value_name = "SECONDS", default_value_t = RANK_TIMEOUT, env = "F2_RANK_TIMEOUT")]
    rank_timeout: u64,
    /// Print the cost of the run, and train nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print every setting's resulting value and where it comes from, and train nothing.
    #[arg(long, conflicts_with = "dry_run")]
    show_config: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// A process's part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The only rank, or rank 0, which writes the run and reports the result.
    Leader,
    /// A rank that a launcher started: its exit code tells the launcher how it ended.
    Rank,
    /// A rank that rank 0 started.
    Child,
}

/// How the training in this process ended.
pub(crate) struct Trained {
    role: Role,
    ending: Ending,
    folder: PathBuf,
    state: TrainingState,
}

impl Train {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        if self.show_config {
            return self.print_config();
        }
        if self.dry_run {
            return self.print_cost();
        }
        let trained = self.among_ranks()?;
        if trained.role == Role::Child {
            return Ok(());
        }
        trained.check_complete()?;
        if trained.role == Role::Rank {
            return Ok(());
        }
        output::print(&if self.json { trained.to_json() } else { trained.to_text() })
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &TrainTask<PathBuf>, device: DeviceChoice) -> Self {
        let new = !task.resume;
        Self {
            corpus: Some(task.corpus.clone()),
            out: new.then(|| task.out.clone()),
            init: task.init.clone().filter(|_| new),
            resume: task.resume.then(|| task.out.clone()),
            allow: Vec::new(),
            classes: task.classes.clone(),
            settings: Settings::of_task(task),
            device,
            gpus: GpuChoice::default(),
            rank_timeout: RANK_TIMEOUT,
            dry_run: false,
            show_config: false,
            json: false,
        }
    }

    /// Trains to the end of the run.
    pub(super) fn train_to_end(&self) -> Outcome {
        self.alone()?.check_complete()
    }

    /// The new run that the flags describe.
    fn new_run(&self) -> Result<NewRun, Failure> {
        Ok(NewRun {
            corpus: self.corpus.clone().expect("clap requires it"),
            out: self.out.clone().expect("clap requires it"),
            init: self.init.clone(),
            classes: self.classes.clone(),
            settings: self.settings.given(self.init.is_none())?,
        })
    }

    /// The run that `--resume` names, with what the other flags change of it.
    fn resumed(&self, path: &Path) -> Result<ResumedRun, Failure> {
        Ok(ResumedRun {
            path: path.to_path_buf(),
            corpus: self.corpus.clone(),
            classes: self.classes.clone(),
            settings: self.settings.given(false)?,
            allow: self.allow.clone(),
        })
    }

    /// The model `--init` names, for a corpus.
    fn initial_model(
        &self,
        corpus: Option<&TrainingCorpus>,
    ) -> Result<Option<InitialModel>, Failure> {
        let open = |path| InitialModel::open(path, corpus);
        Ok(self.init.as_deref().map(open).transpose()?)
    }

    fn train<D: Device>(
        &self,
        device: D,
        ranks: Option<Ranks<D>>,
        prepared: PreparedRun,
    ) -> Result<Trained, Failure> {
        let PreparedRun { run, corpus, .. } = &prepared;
        let folder = run.path().to_path_buf();
        let (leads, threads) = (ranks.as_ref().is_none_or(Ranks::leads), self.device.threads());
        if !leads {
            let stop = &interrupt::asked;
            let trained = prepared.train_among(ranks, device, threads, &mut |_| {}, stop);
            let (ending, state) = trained?;
            return Ok(Trained { role: Role::Rank, ending, folder, state });
        }
        let size = ranks.as_ref().map_or(1, |ranks| ranks.control.size());
        let likelihood = run.config.objective.name.is_likelihood();
        let mut watch = Watch::new(
            size as f64 * device.measured_peak(),
            likelihood,
            run.config.schedule.warmup_steps,
        );
        if corpus.valid.is_empty() {
            watch.say("note: the corpus has no validation split; perplexity will not be computed");
        }
        if let Some(words) = shortened(corpus, run.config.batch.sequence)? {
            watch.say(&words);
        }
        if let Some(shards) = prepared.other_shards() {
            watch.say(&format!(
                "note: {size} ranks need more shards than the run has: {shards} from here on, \
                 so sums are rounded differently than with fewer ranks"
            ));
        }
        let mut observer = |event: &_| watch.see(event);
        let (ending, state) =
            prepared.train_among(ranks, device, threads, &mut observer, &interrupt::asked)?;
        watch.finish();
        curve::draw(&folder)?;
        Ok(Trained { role: Role::Leader, ending, folder, state })
    }
}

/// A remark on pairs that are longer than a row.
fn shortened(corpus: &TrainingCorpus, sequence: usize) -> Result<Option<String>, Failure> {
    let Some(Shortened { sources, targets }) = corpus.shortened(sequence)? else { return Ok(None) };
    let words = format!(
        "note: {sources} pairs are longer than {sequence} tokens (`batch.sequence`) and lose the \
         beginning of their source; {targets} are longer even without it, and lose the end of \
         their target"
    );
    Ok((sources + targets > 0).then_some(words))
}

impl Trained {
    /// Fails if the run was interrupted, and reports one that had nothing left to do.
    fn check_complete(&self) -> Outcome {
        let Self { ending, folder, state, .. } = self;
        if *ending == Ending::Stopped {
            return Err(Failure::new(
                Kind::Interrupted,
                format!("stopped after step {}; everything is saved", state.step),
            )
            .advise(format!("resume with `f2 train --resume {}`", folder.display())));
        }
        if *ending == Ending::AlreadyComplete && self.role == Role::Leader {
            remark!(
                "note: this run had reached its limit; to train on, raise it, such as by \
                 `--steps N --allow budget`"
            );
        }
        Ok(())
    }

    fn newest_checkpoint(&self) -> PathBuf {
        checkpoint::path(&self.folder.join(CHECKPOINTS), self.state.step)
    }

    fn to_json(&self) -> String {
        let result = json!({
            "run": self.folder.display().to_string(),
            "checkpoint": self.newest_checkpoint().display().to_string(),
            "step": self.state.step,
            "tokens": self.state.tokens,
            "seconds": self.state.seconds,
            "best": self.state.best,
        });
        format!("{result}\n")
    }

    fn to_text(&self) -> String {
        let perplexity = self.state.best.map_or_else(String::new, |best| {
            format!(", best validation perplexity {:.2} at step {}", best.perplexity, best.step)
        });
        format!(
            "trained {} steps, {} tokens{perplexity}\ncheckpoint: {}\nloss curve: {}\n",
            self.state.step,
            self.state.tokens,
            self.newest_checkpoint().display(),
            self.folder.join(curve::FILE).display()
        )
    }
}
