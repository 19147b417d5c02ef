//! The locations of the corpora of an experiment, and the stages that prepare them.

use std::path::PathBuf;

use f2_corpus::{Corpus, names};
use f2_lm::decode::ProtocolName;

use super::layout::{Layout, files, stage};
use super::task::{PrepareTask, Task, TokenizerSource};
use super::{CorpusRole, Place, Purpose};
use crate::CorpusSource;

/// The location of a corpus.
pub(super) enum CorpusPlace {
    /// The user's folder.
    Given(PathBuf),
    /// The output of the stage with this number.
    Made(usize),
}

impl CorpusPlace {
    pub(super) fn folder(&self) -> Place {
        match self {
            Self::Given(folder) => Place::Outside(folder.clone()),
            Self::Made(stage) => Place::Made { stage: *stage, name: files::CORPUS },
        }
    }

    pub(super) fn counts(&self) -> Place {
        match self {
            Self::Given(folder) => Place::Outside(folder.join(names::COUNTS)),
            Self::Made(stage) => Place::Made { stage: *stage, name: files::CORPUS_COUNTS },
        }
    }

    fn tokenizer(&self) -> Place {
        match self {
            Self::Given(folder) => Place::Outside(folder.join(names::TOKENIZER)),
            Self::Made(stage) => Place::Made { stage: *stage, name: files::CORPUS_TOKENIZER },
        }
    }
}

impl Layout<'_> {
    /// The corpus of a role; adds a stage that prepares it if it is still text. The target uses the
    /// tokenizer of the pretraining. If the main corpus is given, and so cannot be tokenized again,
    /// the pretraining uses its tokenizer instead.
    pub(super) fn corpus(&mut self, role: CorpusRole) -> CorpusPlace {
        let (main, pretraining) = (&self.corpora.main, self.corpora.pretraining.as_ref());
        match (role, main, pretraining) {
            (CorpusRole::Main | CorpusRole::Target, CorpusSource::Prepared(folder), _)
            | (CorpusRole::Pretraining, _, Some(CorpusSource::Prepared(folder))) => {
                CorpusPlace::Given(folder.clone())
            }
            (CorpusRole::Target, CorpusSource::Text(paths), Some(_)) => {
                let from = self.corpus(CorpusRole::Pretraining);
                self.prepare(CorpusRole::Target, paths, Some(&from))
            }
            (CorpusRole::Main | CorpusRole::Target, CorpusSource::Text(paths), _) => {
                self.prepare(CorpusRole::Main, paths, None)
            }
            (CorpusRole::Pretraining, main, Some(CorpusSource::Text(paths))) => {
                let given = matches!(main, CorpusSource::Prepared(_));
                let from = given.then(|| self.corpus(CorpusRole::Main));
                self.prepare(CorpusRole::Pretraining, paths, from.as_ref())
            }
            (CorpusRole::Pretraining, _, None) => self.corpus(CorpusRole::Main),
        }
    }

    /// Whether every document is preceded by a start symbol, as are the authors' songs. If the main
    /// corpus is given, texts that use its tokenizer follow it.
    fn starts_with_symbol(&self) -> bool {
        match &self.corpora.main {
            CorpusSource::Prepared(folder) => Corpus::open(folder)
                .is_ok_and(|corpus| corpus.manifest().options.start_of_text.is_some()),
            CorpusSource::Text(_) => self.plan.protocol() == ProtocolName::Lyrics,
        }
    }

    /// Prepares a text, with the tokenizer of another corpus if one is given.
    fn prepare(
        &mut self,
        role: CorpusRole,
        paths: &[PathBuf],
        tokenizer: Option<&CorpusPlace>,
    ) -> CorpusPlace {
        let purpose = Purpose::Prepare(role);
        CorpusPlace::Made(self.number(&purpose.clone(), |layout| {
            let plan = layout.plan;
            let learnt = TokenizerSource::Learnt(plan.vocabulary);
            let task = PrepareTask {
                texts: paths.iter().cloned().map(Place::Outside).collect(),
                tokenizer: tokenizer
                    .map_or(learnt, |corpus| TokenizerSource::File(corpus.tokenizer())),
                start_of_text: layout.starts_with_symbol(),
                documents: plan.documents.clone().filter(|_| role != CorpusRole::Pretraining),
                out: Place::Own(files::CORPUS),
            };
            let name = match role {
                CorpusRole::Main => "prepare",
                CorpusRole::Pretraining => "prepare-pretraining",
                CorpusRole::Target => "prepare-target",
            };
            let makes = vec![files::CORPUS_MANIFEST, files::CORPUS_TOKENIZER];
            stage(name.to_owned(), purpose, Task::Prepare(task), makes)
        }))
    }
}
