//! Collects the outputs of the stages into the results for a report.

mod hyperparameters;
mod runs;
mod samples;
mod scores;
mod text;
mod transfer;

pub use runs::read_run;

use std::path::PathBuf;

use f2_corpus::Corpus;
use f2_report::Results;

use crate::stages::Purpose;
use crate::stages::layout::files;
use crate::{Corpora, CorpusRole, CorpusSource, Error, Key, Plan, Stage, Stages, Store};

/// Collects the results of the completed stages; the others are left out.
pub fn collect(
    plan: &Plan,
    corpora: &Corpora,
    stages: &Stages,
    keys: &[Key],
    store: &Store,
) -> Result<Results, Error> {
    let made = Made { stages, keys, store, corpora };
    let name = corpora.main.name();
    let mut results = Results::new(plan.title.clone().unwrap_or_else(|| format!("F² on {name}")));
    results.paper = plan.paper;
    results.protocol = Some(plan.protocol().as_str().to_owned());
    results.classes = made.classes()?;
    results.runs = made.runs()?;
    results.hyperparameters = made.hyperparameters(plan, &results.runs)?;
    results.scores = made.scores()?;
    results.class_trials = made.class_trials(&results)?;
    results.transfer = made.transfer()?;
    if let Some(corpus) = made.corpus(CorpusRole::Main)? {
        results.corpus = Some(text::sizes(&corpus, &name));
        results.samples = made.samples(plan, &corpus)?;
    }
    Ok(results)
}

/// The corpus of a role, if it was given or is prepared.
pub fn corpus(
    role: CorpusRole,
    corpora: &Corpora,
    stages: &Stages,
    keys: &[Key],
    store: &Store,
) -> Result<Option<Corpus>, Error> {
    Made { stages, keys, store, corpora }.corpus(role)
}

/// The stages, with access to the results of the completed ones.
#[derive(Clone, Copy)]
struct Made<'a> {
    stages: &'a Stages,
    keys: &'a [Key],
    store: &'a Store,
    corpora: &'a Corpora,
}

impl<'a> Made<'a> {
    /// All completed stages, with their keys and folders.
    fn done(self) -> impl Iterator<Item = (&'a Stage, &'a Key, PathBuf)> {
        let all = self.stages.0.iter().zip(self.keys);
        all.filter(move |(stage, key)| self.store.done(stage, key).is_some())
            .map(move |(stage, key)| (stage, key, self.store.folder(stage, key)))
    }

    /// The folder of the stage with this purpose, if it is completed.
    fn folder(self, purpose: &Purpose) -> Option<PathBuf> {
        self.done().find(|(stage, ..)| stage.purpose == *purpose).map(|(.., folder)| folder)
    }

    /// The duration of the stage with this purpose in seconds, if it is completed.
    fn seconds(self, purpose: &Purpose) -> Option<f64> {
        let (stage, key, _) = self.done().find(|(stage, ..)| stage.purpose == *purpose)?;
        self.store.done(stage, key).map(|done| done.seconds)
    }

    fn corpus(self, role: CorpusRole) -> Result<Option<Corpus>, Error> {
        let source = match role {
            CorpusRole::Main | CorpusRole::Target => Some(&self.corpora.main),
            CorpusRole::Pretraining => self.corpora.pretraining.as_ref(),
        };
        let folder = match source {
            Some(CorpusSource::Prepared(folder)) => Some(folder.clone()),
            _ => self.folder(&Purpose::Prepare(role)).map(|folder| folder.join(files::CORPUS)),
        };
        Ok(folder.map(|folder| Corpus::open(&folder)).transpose()?)
    }
}
