//! Where the corpora of an experiment lie, and the stages that make them.

use std::path::PathBuf;

use super::commands::{Commands, files, stage};
use super::{CorpusRole, Purpose, Word};
use crate::TextSource;

/// Where a corpus lies.
pub(super) enum CorpusPlace {
    /// In a folder of the user's.
    Given(PathBuf),
    /// In what the stage at this place makes.
    Made(usize),
}

impl CorpusPlace {
    pub(super) fn folder(&self) -> Word {
        match self {
            Self::Given(folder) => Word::Outside(folder.clone()),
            Self::Made(stage) => Word::Made { stage: *stage, name: files::CORPUS },
        }
    }

    pub(super) fn counts(&self) -> Word {
        match self {
            Self::Given(folder) => Word::Outside(folder.join("counts.json")),
            Self::Made(stage) => Word::Made { stage: *stage, name: files::CORPUS_COUNTS },
        }
    }

    fn tokenizer(&self) -> Word {
        match self {
            Self::Given(folder) => Word::Outside(folder.join("tokenizer.json")),
            Self::Made(stage) => Word::Made { stage: *stage, name: files::CORPUS_TOKENIZER },
        }
    }
}

impl Commands<'_> {
    /// The corpus of a role, prepared where it is still text. The target's tokens are those of
    /// the pretraining; of a corpus, which cannot be cut again, the pretraining takes them over.
    pub(super) fn corpus(&mut self, role: CorpusRole) -> CorpusPlace {
        let (main, pretraining) = (&self.texts.main, self.texts.pretraining.as_ref());
        match (role, main, pretraining) {
            (CorpusRole::Main | CorpusRole::Target, TextSource::Corpus(folder), _)
            | (CorpusRole::Pretraining, _, Some(TextSource::Corpus(folder))) => {
                CorpusPlace::Given(folder.clone())
            }
            (CorpusRole::Target, TextSource::Text(paths), Some(_)) => {
                let from = self.corpus(CorpusRole::Pretraining);
                self.prepare(CorpusRole::Target, paths, Some(&from))
            }
            (CorpusRole::Main | CorpusRole::Target, TextSource::Text(paths), _) => {
                self.prepare(CorpusRole::Main, paths, None)
            }
            (CorpusRole::Pretraining, main, Some(TextSource::Text(paths))) => {
                let given = matches!(main, TextSource::Corpus(_));
                let from = given.then(|| self.corpus(CorpusRole::Main));
                self.prepare(CorpusRole::Pretraining, paths, from.as_ref())
            }
            (CorpusRole::Pretraining, _, None) => self.corpus(CorpusRole::Main),
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
        CorpusPlace::Made(self.place(&purpose.clone(), |laid| {
            let mut words: Vec<Word> = vec!["prepare".into()];
            words.extend(paths.iter().cloned().map(Word::Outside));
            words.extend(match tokenizer {
                Some(corpus) => ["--tokenizer".into(), corpus.tokenizer()],
                None => ["--vocab-size".into(), laid.plan.vocabulary.to_string().into()],
            });
            words.extend(["--out".into(), Word::Makes(files::CORPUS)]);
            let name = match role {
                CorpusRole::Main => "prepare",
                CorpusRole::Pretraining => "prepare-pretraining",
                CorpusRole::Target => "prepare-target",
            };
            let makes = vec![files::CORPUS_MANIFEST, files::CORPUS_TOKENIZER];
            stage(name.to_owned(), purpose, words, makes)
        }))
    }
}
