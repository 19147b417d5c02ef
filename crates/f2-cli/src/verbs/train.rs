//! `f2 train`: a corpus in, a run folder out.

mod curve;
mod dry_run;
mod request;
mod watch;

use std::path::{Path, PathBuf};

use clap::Args;
use f2_engine::Device;
use f2_lm::Error;
use f2_lm::config::TrainConfig;
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::checkpoint::{self, TrainingState};
use f2_lm::run::{Manifest, RunFolder};
use f2_lm::train::{
    Classes, Ending, InitialModel, Plan, Session, Source, Text, Trainer, check_run,
};
use serde_json::json;

use crate::failure::{Failure, Kind, Outcome};
use crate::verbs::device::{DeviceChoice, Work};
use crate::verbs::flags::Threads;
use crate::{interrupt, output};
use request::{Base, Settings};
use watch::Watch;

/// Train a model on a prepared corpus, with a plain or a frequency factorised softmax.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 train corpus --out run --preset demo
  f2 train corpus --out run --preset wikitext103 --objective mle --epochs 2
  f2 train corpus --out run --config mine.toml --set model.layers=6 --max-minutes 30
  f2 train corpus --out tuned --objective face --init run
  f2 train reviews --out transferred --objective f2 --init models/gpt2 --set batch.sequence=256
  f2 train --resume run
  f2 train --preset wikitext103 --dry-run

Settings: a flag over the file over the preset over the default. Ctrl-C finishes the step and saves.")]
pub(crate) struct Train {
    /// The corpus folder `f2 prepare` wrote.
    #[arg(value_name = "CORPUS", required_unless_present_any = ["resume", "dry_run"])]
    corpus: Option<PathBuf>,
    /// The run folder to write.
    #[arg(long, short, value_name = "RUN", required_unless_present_any = ["resume", "dry_run"])]
    out: Option<PathBuf>,
    /// Start from this trained model, with its settings: a run, one of its checkpoints, or what
    /// `f2 import` wrote. Of another corpus it is carried over, if the tokenizer is the same.
    #[arg(long, value_name = "MODEL", conflicts_with = "resume")]
    init: Option<PathBuf>,
    /// Go on with this run, or from this checkpoint of one.
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
    threads: Threads,
    #[command(flatten)]
    device: DeviceChoice,
    /// Print what the run would cost, and train nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Everything a session needs before the first number is allocated.
struct Prepared {
    run: RunFolder,
    source: Source,
    classes: Option<Classes>,
    decoder: Decoder,
    /// What to start from, where it is not random.
    initial: Option<InitialModel>,
    /// Where to go on from.
    checkpoint: Option<(TrainingState, PathBuf)>,
}

impl Work for &Train {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Outcome {
        let prepared = match &self.resume {
            Some(path) => self.reopen(&device, path)?,
            None => self.begin(&device)?,
        };
        self.train(device, prepared)
    }
}

impl Train {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        if self.dry_run {
            return self.print_plan();
        }
        self.device.run(self.threads.count(), &self)
    }

    fn begin<D: Device>(&self, device: &D) -> Result<Prepared, Failure> {
        let corpus = self.corpus.as_deref().expect("clap asks for it");
        let out = self.out.as_deref().expect("clap asks for it");
        let source = Source::open(corpus)?;
        let initial = self.initial_model(Some(&source))?;
        let requested = self.settings.resolve(initial.as_ref().into())?;
        let config = requested.for_vocabulary(source.record.vocabulary)?;
        let objective = config.objective.name;
        if objective.fine_tunes() && initial.is_none() {
            return Err(Error::NoInitialModel { objective: objective.as_str() }.into());
        }
        // What cannot work must be told before a folder is left behind.
        check_run(&config, &source.train, &source.valid)?;
        let classes = initial.as_ref().and_then(InitialModel::classes);
        let classes = classes.unwrap_or_else(|| source.record.path.join(checkpoint::CLASSES));
        let classes = self.find_classes(&source, &config, classes)?;
        let decoder = decoder(&config, source.record.vocabulary, classes.as_ref());
        if let Some(initial) = &initial {
            initial.check(&decoder)?;
        }
        check_memory(device, &decoder, &config, &source)?;
        let mut manifest = Manifest::new(
            source.record.clone(),
            classes.as_ref().map(|classes| classes.sha256.clone()),
            decoder.layout.count(),
            device.name(),
            self.threads.count(),
        );
        manifest.initial = initial.as_ref().map(|initial| initial.record().clone());
        let run = RunFolder::create(out, config, manifest)?;
        Ok(Prepared { run, source, classes, decoder, initial, checkpoint: None })
    }

    fn reopen<D: Device>(&self, device: &D, path: &Path) -> Result<Prepared, Failure> {
        let (folder, named) = run_and_checkpoint(path);
        let mut run = RunFolder::open(&folder)?;
        let source = Source::open(self.corpus.as_deref().unwrap_or(&run.manifest.corpus.path))?;
        source.check_same(&run.manifest.corpus)?;
        let requested = self.settings.resolve(Base::Resumed(&run))?;
        let config = requested.for_vocabulary(source.record.vocabulary)?;
        run.change_config(config, &self.allow)?;
        // Killed before its first checkpoint, a run goes on from its beginning.
        let newest = match named {
            Some(named) => Some(named),
            None => run.latest_checkpoint()?,
        };
        let checkpoint = match newest {
            Some(newest) => Some((checkpoint::open(&newest)?, newest)),
            None => None,
        };
        let beside = checkpoint.as_ref().map_or(&source.record.path, |(_, path)| path);
        let classes = self.find_classes(&source, &run.config, beside.join(checkpoint::CLASSES))?;
        if let Some(classes) = &classes {
            classes.check_same(run.manifest.classes_sha256.as_deref())?;
        }
        let decoder = decoder(&run.config, source.record.vocabulary, classes.as_ref());
        check_memory(device, &decoder, &run.config, &source)?;
        let initial = match (&checkpoint, &run.manifest.initial) {
            (None, Some(record)) => Some(InitialModel::reopen(record, &source)?),
            _ => None,
        };
        Ok(Prepared { run, source, classes, decoder, initial, checkpoint })
    }

    /// The model `--init` names, for a corpus.
    fn initial_model(&self, corpus: Option<&Source>) -> Result<Option<InitialModel>, Failure> {
        let open = |path| InitialModel::open(path, corpus);
        Ok(self.init.as_deref().map(open).transpose()?)
    }

    /// The classes of an F² model, from `usual` unless a file is named.
    fn find_classes(
        &self,
        source: &Source,
        config: &TrainConfig,
        usual: PathBuf,
    ) -> Result<Option<Classes>, Failure> {
        if !config.objective.name.needs_classes() {
            return match &self.classes {
                Some(_) => Err(Failure::usage("--classes is of no use to a plain softmax")),
                None => Ok(None),
            };
        }
        let path = self.classes.clone().unwrap_or(usual);
        Ok(Some(source.classes(&path)?))
    }

    fn train<D: Device>(&self, device: D, prepared: Prepared) -> Outcome {
        let Prepared { run, source, classes, decoder, initial, checkpoint } = prepared;
        let folder = run.path().to_path_buf();
        let likelihood = run.config.objective.name.is_likelihood();
        let mut watch = Watch::new(device.measured_peak(), likelihood);
        if source.valid.is_empty() {
            watch.say("note: the corpus has no validation split; perplexity will not be taken");
        }
        let attachments = source.attachments(classes.as_ref())?;
        let mut trainer = Trainer::new(device, decoder, &run.config)?;
        if let Some(initial) = initial {
            let class_vectors = run.config.initial.class_vectors;
            initial.load(&mut trainer.network, class_vectors, &source.counts)?;
        }
        let text = Text { train: &source.train, valid: &source.valid };
        let threads = self.threads.count();
        let mut observer = |event: &_| watch.see(event);
        let mut session = Session::new(trainer, run, text, attachments, threads, &mut observer)?;
        if let Some((state, path)) = checkpoint {
            session.restore(&path, state)?;
        }
        let ending = session.run(&interrupt::asked)?;
        let state = session.state.clone();
        drop(session);
        watch.finish();
        curve::draw(&folder)?;
        self.conclude(ending, &folder, &state)
    }

    fn conclude(&self, ending: Ending, folder: &Path, state: &TrainingState) -> Outcome {
        if ending == Ending::Stopped {
            return Err(Failure::new(
                Kind::Interrupted,
                format!("stopped after step {}; everything is saved", state.step),
            )
            .advise(format!("go on with `f2 train --resume {}`", folder.display())));
        }
        if ending == Ending::AlreadyComplete {
            eprintln!(
                "note: this run had reached its limit; to train on, raise it, such as by \
                 `--steps N --allow budget`"
            );
        }
        let newest = checkpoint::path(&folder.join("checkpoints"), state.step);
        output::print(&if self.json {
            to_json(folder, &newest, state)
        } else {
            to_text(folder, &newest, state)
        })
    }
}

fn to_json(folder: &Path, newest: &Path, state: &TrainingState) -> String {
    let result = json!({
        "run": folder,
        "checkpoint": newest,
        "step": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "best": state.best,
    });
    format!("{result}\n")
}

fn to_text(folder: &Path, newest: &Path, state: &TrainingState) -> String {
    let perplexity = state.best.map_or_else(String::new, |best| {
        format!(", best validation perplexity {:.2} at step {}", best.perplexity, best.step)
    });
    format!(
        "trained {} steps, {} tokens{perplexity}\ncheckpoint: {}\nloss curve: {}\n",
        state.step,
        state.tokens,
        newest.display(),
        folder.join(curve::FILE).display()
    )
}

fn decoder(config: &TrainConfig, vocabulary: usize, classes: Option<&Classes>) -> Decoder {
    Decoder::new(ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary,
        class_ends: classes.map(|classes| classes.ends.clone()).unwrap_or_default(),
    })
}

fn check_memory<D: Device>(
    device: &D,
    decoder: &Decoder,
    config: &TrainConfig,
    source: &Source,
) -> Outcome {
    let outputs = source.mean_outputs(decoder.head.class_ends());
    Ok(Plan::new::<D>(decoder, config, outputs).check_memory(device)?)
}

/// The run folder, and the checkpoint where one of its checkpoints was named.
fn run_and_checkpoint(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let parent = path.parent().filter(|parent| parent.ends_with("checkpoints"));
    match parent.and_then(Path::parent) {
        Some(run) if path.join(checkpoint::STATE).exists() => {
            (run.to_path_buf(), Some(path.to_path_buf()))
        }
        _ => (path.to_path_buf(), None),
    }
}
