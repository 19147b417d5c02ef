//! Starting and resuming a run: everything that is checked before memory is allocated, and the
//! session that follows.

use std::path::{Path, PathBuf};

use f2_engine::Device;
use f2_files::Lock;

use super::parallel::{RunIdentity, session_shards, settle_shards};
use super::settings::{Base, GivenSettings};
use super::{
    Classes, Ending, InitialModel, Ranks, RunCost, Session, Trainer, TrainingCorpus, check_run,
};
use crate::Error;
use crate::config::TrainConfig;
use crate::model::{Decoder, ModelShape};
use crate::run::checkpoint::{self, CLASSES, TrainingState};
use crate::run::{CHECKPOINTS, Event, Manifest, RunFolder};

/// A run to start.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The corpus it is trained on.
    pub corpus: PathBuf,
    /// The folder to write.
    pub out: PathBuf,
    /// A trained model to start from, in place of random values.
    pub init: Option<PathBuf>,
    /// The frequency classes of an F² model, if not the corpus's own.
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
    /// The frequency classes, if not those of the checkpoint.
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
    /// The model to start from, unless parameters are random.
    initial: Option<InitialModel>,
    /// The checkpoint to resume from.
    checkpoint: Option<(TrainingState, PathBuf)>,
    /// The settings of this session: the run's, with more shards if there are more ranks.
    session: TrainConfig,
    /// Keeps other processes from writing the run; held by rank 0.
    lock: Option<Lock>,
}

impl NewRun {
    /// A run of this corpus in this folder, from random values and with the corpus's own classes.
    pub fn new(corpus: &Path, out: &Path, settings: GivenSettings) -> Self {
        let (corpus, out) = (corpus.to_path_buf(), out.to_path_buf());
        Self { corpus, out, init: None, classes: None, settings }
    }

    /// Checks everything that could fail later, then creates the run's folder.
    pub fn prepare<D: Device>(&self, device: &D, threads: usize) -> Result<PreparedRun, Error> {
        self.prepare_among(&mut None, device, threads)
    }

    /// Like [`prepare`](Self::prepare), as one of several ranks: rank 0 creates the folder once all
    /// agree.
    pub fn prepare_among<D: Device>(
        &self,
        ranks: &mut Option<Ranks<D>>,
        device: &D,
        threads: usize,
    ) -> Result<PreparedRun, Error> {
        let corpus = TrainingCorpus::open(&self.corpus)?;
        let initial = self.init.as_deref().map(|path| InitialModel::open(path, Some(&corpus)));
        let initial = initial.transpose()?;
        let resolved = self.settings.resolve(initial.as_ref().into())?;
        let origins = resolved.origins.clone();
        let mut config = resolved.for_corpus(&corpus)?;
        settle_shards(&mut config, size(ranks.as_ref()))?;
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
        check_memory(device, &decoder, &config, &corpus, ranks.as_ref())?;
        let mut manifest = Manifest::new(
            corpus.record.clone(),
            classes.as_ref().map(|classes| classes.sha256.clone()),
            decoder.layout.count(),
            device.name(),
            threads,
        );
        manifest.initial = initial.as_ref().map(|initial| initial.record().clone());
        compare(ranks, device, &config, &manifest, None)?;
        let create = || {
            let lock = RunFolder::lock(&self.out)?;
            Ok((RunFolder::create(&self.out, config.clone(), manifest.clone())?, lock))
        };
        let (run, lock) = match lead(ranks, create)? {
            Some((run, lock)) => (run, Some(lock)),
            None => (RunFolder::written_elsewhere(&self.out, config, manifest), None),
        };
        let (session, checkpoint) = (run.config.clone(), None);
        Ok(PreparedRun { run, corpus, classes, decoder, initial, checkpoint, session, lock })
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
        self.prepare_among(&mut None, device)
    }

    /// Like [`prepare`](Self::prepare), as one of several ranks: rank 0 changes the settings once
    /// all agree.
    pub fn prepare_among<D: Device>(
        &self,
        ranks: &mut Option<Ranks<D>>,
        device: &D,
    ) -> Result<PreparedRun, Error> {
        let (folder, named) = run_and_checkpoint(&self.path);
        // Checked before locking, which would create the folder.
        RunFolder::open(&folder)?;
        let lock = lead(ranks, || RunFolder::lock(&folder))?;
        let mut run = RunFolder::open(&folder)?;
        let corpus =
            TrainingCorpus::open(self.corpus.as_deref().unwrap_or(&run.manifest.corpus.path))?;
        corpus.check_same(&run.manifest.corpus)?;
        let resolved = self.settings.resolve(Base::Resumed(&run))?;
        let config = resolved.for_corpus(&corpus)?;
        let changed = run.adopt_config(config, &self.allow)?;
        let session = session_shards(&run.config, size(ranks.as_ref()))?;
        // A run killed before its first checkpoint restarts from the beginning.
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
        check_memory(device, &decoder, &session, &corpus, ranks.as_ref())?;
        let initial = match (&checkpoint, &run.manifest.initial) {
            (None, Some(record)) => Some(InitialModel::reopen(record, &corpus)?),
            _ => None,
        };
        let step = checkpoint.as_ref().map(|(state, _)| state.step);
        compare(ranks, device, &session, &run.manifest, step)?;
        lead(ranks, || if changed { run.write_config() } else { Ok(()) })?;
        Ok(PreparedRun { run, corpus, classes, decoder, initial, checkpoint, session, lock })
    }
}

/// How many ranks there are.
fn size<D: Device>(ranks: Option<&Ranks<D>>) -> usize {
    ranks.map_or(1, |ranks| ranks.control.size())
}

/// Runs `work` on rank 0 alone.
fn lead<D: Device, T>(
    ranks: &mut Option<Ranks<D>>,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    match ranks {
        Some(ranks) => ranks.lead(work),
        None => work().map(Some),
    }
}

/// Refuses ranks that were started differently.
fn compare<D: Device>(
    ranks: &mut Option<Ranks<D>>,
    device: &D,
    config: &TrainConfig,
    manifest: &Manifest,
    checkpoint: Option<u64>,
) -> Result<(), Error> {
    let Some(ranks) = ranks else { return Ok(()) };
    ranks.compare(&RunIdentity { config, manifest, checkpoint }.fingerprint(device))
}

impl PreparedRun {
    /// The number of shards of this session, if it needs more than the run has.
    pub fn other_shards(&self) -> Option<usize> {
        let [run, session] = [&self.run.config, &self.session].map(|of| of.batch.shards.max(1));
        (session != run).then_some(session)
    }

    /// Trains to the run's limit, or until `stop` returns true. `observer` is called with every
    /// event. Returns how it ended, and the training state.
    pub fn train<D: Device>(
        self,
        device: D,
        threads: usize,
        observer: &mut dyn FnMut(&Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<(Ending, TrainingState), Error> {
        self.train_among(None, device, threads, observer, stop)
    }

    /// Like [`train`](Self::train), as one of several ranks. Rank 0 decides when to stop, and
    /// writes the run.
    pub fn train_among<D: Device>(
        self,
        mut ranks: Option<Ranks<D>>,
        device: D,
        threads: usize,
        observer: &mut dyn FnMut(&Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<(Ending, TrainingState), Error> {
        let Self { run, corpus, classes, decoder, initial, checkpoint, session, lock } = self;
        let made = corpus.attachments(classes.as_ref()).and_then(|attachments| {
            Ok((attachments, Trainer::among(&mut ranks, device, decoder, &session)?))
        });
        if let (Err(error), Some(ranks)) = (&made, &mut ranks) {
            ranks.tell(error);
        }
        let (attachments, mut trainer) = made?;
        if let Some(initial) = initial {
            let class_vectors = run.config.initial.class_vectors;
            let loaded = initial.load(&mut trainer.network, class_vectors, &corpus.counts);
            loaded.inspect_err(|error| trainer.tell(error))?;
        }
        let mut session =
            Session::new(trainer, run, corpus.splits(), attachments, threads, observer)?;
        if let Some((state, path)) = checkpoint {
            let restored = session.restore(&path, state);
            restored.inspect_err(|error| session.trainer.tell(error))?;
        }
        let ending = session.run(stop);
        let ending = ending.inspect_err(|error| session.trainer.tell(error))?;
        if let Some(ranks) = &mut session.trainer.ranks {
            ranks.control.finish();
        }
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
    ranks: Option<&Ranks<D>>,
) -> Result<(), Error> {
    let outputs = corpus.mean_outputs(&decoder.shape.class_ends);
    RunCost::among::<D>(decoder, config, outputs, size(ranks)).check_memory(device)
}

/// The run folder of a path, and the checkpoint if the path is one.
fn run_and_checkpoint(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let parent = path.parent().filter(|parent| parent.ends_with(CHECKPOINTS));
    match parent.and_then(Path::parent) {
        Some(run) if path.join(checkpoint::STATE).exists() => {
            (run.to_path_buf(), Some(path.to_path_buf()))
        }
        _ => (path.to_path_buf(), None),
    }
}
