//! How a run begins or goes on: all that is known and checked before the first number is allocated,
//! and the session that follows.

use std::path::{Path, PathBuf};

use f2_engine::Device;
use f2_files::Lock;

use super::settings::{Base, GivenSettings};
use super::{Classes, Ending, InitialModel, Plan, Session, Source, Trainer, check_run};
use crate::Error;
use crate::config::TrainConfig;
use crate::model::{Decoder, ModelShape};
use crate::run::checkpoint::{self, CLASSES, TrainingState};
use crate::run::{Event, Manifest, RunFolder};

/// A run to begin.
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

/// A run to go on with.
#[derive(Clone, Debug)]
pub struct ResumedRun {
    /// Its folder, or that of one of its checkpoints.
    pub path: PathBuf,
    /// The corpus, where it was moved.
    pub corpus: Option<PathBuf>,
    /// The frequency classes, where they are not those of the checkpoint.
    pub classes: Option<PathBuf>,
    /// Settings that change.
    pub settings: GivenSettings,
    /// Keys or sections that may.
    pub allow: Vec<String>,
}

/// A run that passed every check and can be trained.
pub struct PreparedRun {
    /// The run.
    pub run: RunFolder,
    /// Its corpus.
    pub source: Source,
    classes: Option<Classes>,
    decoder: Decoder,
    /// The model to start from, where it is not random.
    initial: Option<InitialModel>,
    /// The checkpoint to go on from.
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

    /// Checks all that can be known to fail, then makes the run's folder.
    pub fn prepare<D: Device>(&self, device: &D, threads: usize) -> Result<PreparedRun, Error> {
        let source = Source::open(&self.corpus)?;
        let initial = self.init.as_deref().map(|path| InitialModel::open(path, Some(&source)));
        let initial = initial.transpose()?;
        let resolved = self.settings.resolve(initial.as_ref().into())?;
        let origins = resolved.origins.clone();
        let config = resolved.for_vocabulary(source.record.vocabulary)?;
        let objective = config.objective.name;
        if objective.fine_tunes() && initial.is_none() {
            return Err(Error::NoInitialModel { objective: objective.as_str() });
        }
        check_run(&config, &source.train, &source.valid)?;
        let own = initial.as_ref().and_then(InitialModel::classes);
        let own = own.unwrap_or_else(|| source.record.path.join(CLASSES));
        let classes = source.classes_for(&config, self.classes.as_deref(), &own)?;
        let decoder = decoder(&config, source.record.vocabulary, classes.as_ref());
        if let Some(initial) = &initial {
            initial.check(&decoder, &origins)?;
        }
        check_memory(device, &decoder, &config, &source)?;
        let mut manifest = Manifest::new(
            source.record.clone(),
            classes.as_ref().map(|classes| classes.sha256.clone()),
            decoder.layout.count(),
            device.name(),
            threads,
        );
        manifest.initial = initial.as_ref().map(|initial| initial.record().clone());
        let lock = RunFolder::lock(&self.out)?;
        let run = RunFolder::create(&self.out, config, manifest)?;
        Ok(PreparedRun { run, source, classes, decoder, initial, checkpoint: None, lock })
    }
}

impl ResumedRun {
    /// Goes on with the run in this folder, as it is.
    pub fn new(path: &Path) -> Self {
        let (path, settings) = (path.to_path_buf(), GivenSettings::default());
        Self { path, corpus: None, classes: None, settings, allow: Vec::new() }
    }

    /// Checks that the run can go on, and changes the settings that may change.
    pub fn prepare<D: Device>(&self, device: &D) -> Result<PreparedRun, Error> {
        let (folder, named) = run_and_checkpoint(&self.path);
        // Before the lock, which would make the folder.
        RunFolder::open(&folder)?;
        let lock = RunFolder::lock(&folder)?;
        let mut run = RunFolder::open(&folder)?;
        let source = Source::open(self.corpus.as_deref().unwrap_or(&run.manifest.corpus.path))?;
        source.check_same(&run.manifest.corpus)?;
        let resolved = self.settings.resolve(Base::Resumed(&run))?;
        let config = resolved.for_vocabulary(source.record.vocabulary)?;
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
        let own = beside.join(CLASSES);
        let classes = source.classes_for(&run.config, self.classes.as_deref(), &own)?;
        if let Some(classes) = &classes {
            classes.check_same(run.manifest.classes_sha256.as_deref())?;
        }
        let decoder = decoder(&run.config, source.record.vocabulary, classes.as_ref());
        check_memory(device, &decoder, &run.config, &source)?;
        let initial = match (&checkpoint, &run.manifest.initial) {
            (None, Some(record)) => Some(InitialModel::reopen(record, &source)?),
            _ => None,
        };
        Ok(PreparedRun { run, source, classes, decoder, initial, checkpoint, lock })
    }
}

impl PreparedRun {
    /// Trains to the run's limit, or until `stop` says so. `observer` is told all that happens.
    /// Returns how it ended, and where training stands.
    pub fn train<D: Device>(
        self,
        device: D,
        threads: usize,
        observer: &mut dyn FnMut(&Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<(Ending, TrainingState), Error> {
        let Self { run, source, classes, decoder, initial, checkpoint, lock } = self;
        let attachments = source.attachments(classes.as_ref())?;
        let mut trainer = Trainer::new(device, decoder, &run.config)?;
        if let Some(initial) = initial {
            let class_vectors = run.config.initial.class_vectors;
            initial.load(&mut trainer.network, class_vectors, &source.counts)?;
        }
        let mut session =
            Session::new(trainer, run, source.text(), attachments, threads, observer)?;
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
    source: &Source,
) -> Result<(), Error> {
    let outputs = source.mean_outputs(&decoder.shape.class_ends);
    Plan::new::<D>(decoder, config, outputs).check_memory(device)
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
