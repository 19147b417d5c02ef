//! Where the corpora of an experiment lie, and the stages that make them.

use std::path::PathBuf;

use f2_corpus::{Corpus, names};
use f2_lm::decode::ProtocolName;

use super::layout::{Layout, files, stage};
use super::task::{PrepareTask, Task, TokenizerSource};
use super::{CorpusRole, Place, Purpose};
use crate::CorpusSource;

/// Where a corpus lies.
pub(super) enum CorpusPlace {
    /// In a folder of the user's.
    Given(PathBuf),
    /// In what the stage of this number makes.
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
    /// The corpus of a role, prepared where it is still text. The target's tokens are those of
    /// the pretraining; of a corpus, which cannot be cut again, the pretraining takes them over.
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

    /// Whether a symbol is put before every document. The authors' songs begin with one; a corpus
    /// that is given decides for the texts that take its tokens over.
    fn starts_with_symbol(&self) -> bool {
        match &self.corpora.main {
            CorpusSource::Prepared(folder) => Corpus::open(folder)
                .is_ok_and(|corpus| corpus.manifest().options.start_of_text.is_some()),
            CorpusSource::Text(_) => self.plan.protocol() == ProtocolName::Lyrics,
        }
    }

    /// Prepares a text, with the tokenizer of another corpus where one is given.
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
