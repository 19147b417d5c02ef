//! How a run starts or resumes: everything that is checked before memory is allocated, and the
//! session that follows.

use std::path::{Path, PathBuf};

use f2_engine::Device;
use f2_files::Lock;

use super::settings::{Base, GivenSettings};
use super::{Classes, Ending, InitialModel, RunCost, Session, Trainer, TrainingCorpus, check_run};
use crate::Error;
use crate::config::TrainConfig;
use crate::model::{Decoder, ModelShape};
use crate::run::checkpoint::{self, CLASSES, TrainingState};
use crate::run::{Event, Manifest, RunFolder};

/// A run to start.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The corpus it is trained on.
    pub corpus: PathBuf,
    /// The folder to write.
    pub out: PathBuf,
    /// A trained model to start from, in place of random values.
    pub init: Option<PathBuf>,
    /// The frequency classes of an F² model, where they are not the corpus's own.
    pub classes: Option<PathBuf>,
    /// Its settings.
    pub settings: GivenSettings,
}

/// A run to resume.
#[derive(Clone, Debug)]
pub struct ResumedRun {
    /// Its folder, or that of one of its checkpoints.
    pub path: PathBuf,
    /// The corpus, if it was moved.
    pub corpus: Option<PathBuf>,
    /// The frequency classes, where they are not those of the checkpoint.
    pub classes: Option<PathBuf>,
    /// Changed settings.
    pub settings: GivenSettings,
    /// Keys or sections that may change.
    pub allow: Vec<String>,
}

/// A run that passed every check and can be trained.
pub struct PreparedRun {
    /// The run.
    pub run: RunFolder,
    /// Its corpus.
    pub corpus: TrainingCorpus,
    classes: Option<Classes>,
    decoder: Decoder,
    /// The model to start from, where it is not random.
    initial: Option<InitialModel>,
    /// The checkpoint to resume from.
    checkpoint: Option<(TrainingState, PathBuf)>,
    /// Keeps other processes from writing the run.
    lock: Lock,
}

impl NewRun {
    /// A run of this corpus in this folder, from random values and with the corpus's own classes.
    pub fn new(corpus: &Path, out: &Path, settings: GivenSettings) -> Self {
        let (corpus, out) = (corpus.to_path_buf(), out.to_path_buf());
        Self { corpus, out, init: None, classes: None, settings }
    }

    /// Checks everything that could fail later, then creates the run's folder.
    pub fn prepare<D: Device>(&self, device: &D, threads: usize) -> Result<PreparedRun, Error> {
        let corpus = TrainingCorpus::open(&self.corpus)?;
        let initial = self.init.as_deref().map(|path| InitialModel::open(path, Some(&corpus)));
        let initial = initial.transpose()?;
        let resolved = self.settings.resolve(initial.as_ref().into())?;
        let origins = resolved.origins.clone();
        let config = resolved.for_vocabulary(corpus.record.vocabulary)?;
        let objective = config.objective.name;
        if objective.fine_tunes() && initial.is_none() {
            return Err(Error::NoInitialModel { objective: objective.as_str() });
        }
        check_run(&config, &corpus.train, &corpus.valid)?;
        let own = initial.as_ref().and_then(InitialModel::classes);
        let own = own.unwrap_or_else(|| corpus.record.path.join(CLASSES));
        let classes = corpus.classes_for(&config, self.classes.as_deref(), &own)?;
        let decoder = decoder(&config, corpus.record.vocabulary, classes.as_ref());
        if let Some(initial) = &initial {
            initial.check(&decoder, &origins)?;
        }
        check_memory(device, &decoder, &config, &corpus)?;
        let mut manifest = Manifest::new(
            corpus.record.clone(),
            classes.as_ref().map(|classes| classes.sha256.clone()),
            decoder.layout.count(),
            device.name(),
            threads,
        );
        manifest.initial = initial.as_ref().map(|initial| initial.record().clone());
        let lock = RunFolder::lock(&self.out)?;
        let run = RunFolder::create(&self.out, config, manifest)?;
        Ok(PreparedRun { run, corpus, classes, decoder, initial, checkpoint: None, lock })
    }
}

impl ResumedRun {
    /// Resumes the run in this folder, unchanged.
    pub fn new(path: &Path) -> Self {
        let (path, settings) = (path.to_path_buf(), GivenSettings::default());
        Self { path, corpus: None, classes: None, settings, allow: Vec::new() }
    }

    /// Checks that the run can be resumed, and changes the settings that may change.
    pub fn prepare<D: Device>(&self, device: &D) -> Result<PreparedRun, Error> {
        let (folder, named) = run_and_checkpoint(&self.path);
        // Before the lock, which would create the folder.
        RunFolder::open(&folder)?;
        let lock = RunFolder::lock(&folder)?;
        let mut run = RunFolder::open(&folder)?;
        let corpus =
            TrainingCorpus::open(self.corpus.as_deref().unwrap_or(&run.manifest.corpus.path))?;
        corpus.check_same(&run.manifest.corpus)?;
        let resolved = self.settings.resolve(Base::Resumed(&run))?;
        let config = resolved.for_vocabulary(corpus.record.vocabulary)?;
        run.change_config(config, &self.allow)?;
        // A run killed before its first checkpoint restarts from its beginning.
        let newest = match named {
            Some(named) => Some(named),
            None => run.latest_checkpoint()?,
        };
        let checkpoint = match newest {
            Some(newest) => Some((checkpoint::open(&newest)?, newest)),
            None => None,
        };
        let beside = checkpoint.as_ref().map_or(&corpus.record.path, |(_, path)| path);
        let own = beside.join(CLASSES);
        let classes = corpus.classes_for(&run.config, self.classes.as_deref(), &own)?;
        if let Some(classes) = &classes {
            classes.check_same(run.manifest.classes_sha256.as_deref())?;
        }
        let decoder = decoder(&run.config, corpus.record.vocabulary, classes.as_ref());
        check_memory(device, &decoder, &run.config, &corpus)?;
        let initial = match (&checkpoint, &run.manifest.initial) {
            (None, Some(record)) => Some(InitialModel::reopen(record, &corpus)?),
            _ => None,
        };
        Ok(PreparedRun { run, corpus, classes, decoder, initial, checkpoint, lock })
    }
}

impl PreparedRun {
    /// Trains to the run's limit, or until `stop` returns true. `observer` is called with every
    /// event. Returns how it ended, and the training state.
    pub fn train<D: Device>(
        self,
        device: D,
        threads: usize,
        observer: &mut dyn FnMut(&Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<(Ending, TrainingState), Error> {
        let Self { run, corpus, classes, decoder, initial, checkpoint, lock } = self;
        let attachments = corpus.attachments(classes.as_ref())?;
        let mut trainer = Trainer::new(device, decoder, &run.config)?;
        if let Some(initial) = initial {
            let class_vectors = run.config.initial.class_vectors;
            initial.load(&mut trainer.network, class_vectors, &corpus.counts)?;
        }
        let mut session =
            Session::new(trainer, run, corpus.splits(), attachments, threads, observer)?;
        if let Some((state, path)) = checkpoint {
            session.restore(&path, state)?;
        }
        let ending = session.run(stop)?;
        let state = session.state.clone();
        drop((session, lock));
        Ok((ending, state))
    }
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
    corpus: &TrainingCorpus,
) -> Result<(), Error> {
    let outputs = corpus.mean_outputs(&decoder.shape.class_ends);
    RunCost::new::<D>(decoder, config, outputs).check_memory(device)
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
