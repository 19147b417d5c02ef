//! What the stages made, gathered into the results a report is made from.

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
use crate::stages::commands::files;
use crate::{CorpusRole, Error, Key, Plan, Stage, Stages, Store, TextSource, Texts};

/// Gathers what is done; what is not is left out.
pub fn collect(
    plan: &Plan,
    texts: &Texts,
    stages: &Stages,
    keys: &[Key],
    store: &Store,
) -> Result<Results, Error> {
    let made = Made { stages, keys, store, texts };
    let name = texts.main.name();
    let mut results = Results::new(plan.title.clone().unwrap_or_else(|| format!("F² on {name}")));
    results.paper = plan.paper;
    results.classes = made.classes()?;
    results.runs = made.runs()?;
    results.scores = made.scores()?;
    results.class_trials = made.class_trials(&results)?;
    results.transfer = made.transfer()?;
    if let Some(corpus) = made.corpus(CorpusRole::Main)? {
        results.corpus = Some(text::sizes(&corpus, &name));
        results.samples = made.samples(plan, &corpus)?;
    }
    Ok(results)
}

/// The corpus of a role, where it was given or is prepared.
pub fn corpus(
    role: CorpusRole,
    texts: &Texts,
    stages: &Stages,
    keys: &[Key],
    store: &Store,
) -> Result<Option<Corpus>, Error> {
    Made { stages, keys, store, texts }.corpus(role)
}

/// The stages that are done.
#[derive(Clone, Copy)]
struct Made<'a> {
    stages: &'a Stages,
    keys: &'a [Key],
    store: &'a Store,
    texts: &'a Texts,
}

impl<'a> Made<'a> {
    /// Every stage that is done, with its folder and key.
    fn done(self) -> impl Iterator<Item = (&'a Stage, &'a Key, PathBuf)> {
        let all = self.stages.0.iter().zip(self.keys);
        all.filter(move |(stage, key)| self.store.done(stage, key).is_some())
            .map(move |(stage, key)| (stage, key, self.store.folder(stage, key)))
    }

    /// The folder of the stage with this purpose, if it is done.
    fn folder(self, purpose: &Purpose) -> Option<PathBuf> {
        self.done().find(|(stage, ..)| stage.purpose == *purpose).map(|(.., folder)| folder)
    }

    /// The seconds the stage with this purpose took, if it is done.
    fn seconds(self, purpose: &Purpose) -> Option<f64> {
        let (stage, key, _) = self.done().find(|(stage, ..)| stage.purpose == *purpose)?;
        self.store.done(stage, key).map(|done| done.seconds)
    }

    /// What the stage with this purpose printed, if it is done.
    fn output(self, purpose: &Purpose) -> Result<Option<String>, Error> {
        let found = self.done().find(|(stage, ..)| stage.purpose == *purpose);
        found.map(|(stage, key, _)| self.store.output(stage, key)).transpose()
    }

    fn corpus(self, role: CorpusRole) -> Result<Option<Corpus>, Error> {
        let source = match role {
            CorpusRole::Main | CorpusRole::Target => Some(&self.texts.main),
            CorpusRole::Pretraining => self.texts.pretraining.as_ref(),
        };
        let folder = match source {
            Some(TextSource::Corpus(folder)) => Some(folder.clone()),
            _ => self.folder(&Purpose::Prepare(role)).map(|folder| folder.join(files::CORPUS)),
        };
        Ok(folder.map(|folder| Corpus::open(&folder)).transpose()?)
    }
}
