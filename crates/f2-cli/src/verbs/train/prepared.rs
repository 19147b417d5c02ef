//! All that must be known and checked before the first number of a run is allocated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use f2_engine::Device;
use f2_files::Lock;
use f2_lm::Error;
use f2_lm::config::{Origin, TrainConfig};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::checkpoint::{self, TrainingState};
use f2_lm::run::{Manifest, RunFolder};
use f2_lm::train::{Classes, InitialModel, Plan, Source, check_run};

use super::Train;
use super::request::Base;
use crate::failure::{Failure, Outcome};

/// Everything a session needs before the first number is allocated.
pub(super) struct Prepared {
    pub(super) run: RunFolder,
    pub(super) source: Source,
    pub(super) classes: Option<Classes>,
    pub(super) decoder: Decoder,
    /// What to start from, where it is not random.
    pub(super) initial: Option<InitialModel>,
    /// Where to go on from.
    pub(super) checkpoint: Option<(TrainingState, PathBuf)>,
    /// Keeps other processes from writing the run.
    pub(super) lock: Lock,
}

impl Train {
    /// A new run.
    pub(super) fn begin<D: Device>(&self, device: &D) -> Result<Prepared, Failure> {
        let corpus = self.corpus.as_deref().expect("clap asks for it");
        let out = self.out.as_deref().expect("clap asks for it");
        let source = Source::open(corpus)?;
        let initial = self.initial_model(Some(&source))?;
        let requested = self.settings.resolve(initial.as_ref().into())?;
        let origins = requested.0.origins.clone();
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
            initial.check(&decoder).map_err(|error| mismatch(error, &origins))?;
        }
        check_memory(device, &decoder, &config, &source)?;
        let mut manifest = Manifest::new(
            source.record.clone(),
            classes.as_ref().map(|classes| classes.sha256.clone()),
            decoder.layout.count(),
            device.name(),
            self.device.threads(),
        );
        manifest.initial = initial.as_ref().map(|initial| initial.record().clone());
        let lock = RunFolder::lock(out)?;
        let run = RunFolder::create(out, config, manifest)?;
        Ok(Prepared { run, source, classes, decoder, initial, checkpoint: None, lock })
    }

    /// A run that goes on.
    pub(super) fn reopen<D: Device>(&self, device: &D, path: &Path) -> Result<Prepared, Failure> {
        let (folder, named) = run_and_checkpoint(path);
        // Before the lock, which would make the folder.
        RunFolder::open(&folder)?;
        let lock = RunFolder::lock(&folder)?;
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
        Ok(Prepared { run, source, classes, decoder, initial, checkpoint, lock })
    }

    /// The model `--init` names, for a corpus.
    pub(super) fn initial_model(
        &self,
        corpus: Option<&Source>,
    ) -> Result<Option<InitialModel>, Failure> {
        let open = |path| InitialModel::open(path, corpus);
        Ok(self.init.as_deref().map(open).transpose()?)
    }

    /// The classes of an F² model, from `usual` unless a file is named.
    pub(super) fn find_classes(
        &self,
        source: &Source,
        config: &TrainConfig,
        usual: PathBuf,
    ) -> Result<Option<Classes>, Failure> {
        if !config.objective.name.needs_classes() {
            return match &self.classes {
                Some(_) => Err(Failure::usage("--classes is of no use to a plain softmax")
                    .advise("leave it out, or train with `--objective f2`")),
                None => Ok(None),
            };
        }
        let path = self.classes.clone().unwrap_or(usual);
        Ok(Some(source.classes(&path)?))
    }
}

/// A model that does not fit the settings, with advice about the one who gave them.
fn mismatch(error: Error, origins: &BTreeMap<String, Origin>) -> Failure {
    let Error::InitialModelMismatch { key, .. } = error else { return error.into() };
    let takes_over = "so that the run takes over the model's, or name another model";
    let advice = match origins.get(key) {
        Some(Origin::Preset(preset)) => {
            Some(format!("leave `--preset {preset}` out, {takes_over}"))
        }
        Some(Origin::Caller(words)) => Some(format!("leave `{words}` out, {takes_over}")),
        Some(Origin::File { .. }) => Some(format!("leave `{key}` out of the file, {takes_over}")),
        Some(Origin::FineTuning) | None => None,
    };
    let failure = Failure::from(error);
    match advice {
        Some(advice) => failure.advise(advice),
        None => failure,
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
