//! The corpus and its classes.

use f2_classes::{ClassSelection, Method};
use f2_corpus::Corpus;
use f2_files::regular_file;
use f2_report::results::{ClassesResult, CorpusResult, SplitResult};

use super::Made;
use crate::stages::Purpose;
use crate::stages::layout::files;
use crate::{CorpusRole, Error};

/// The sizes of a corpus and its splits, as in the paper's table of dataset statistics.
pub(super) fn sizes(corpus: &Corpus, name: &str) -> CorpusResult {
    let manifest = corpus.manifest();
    let split = |size: &f2_corpus::SplitSize| SplitResult {
        split: size.split.name().to_owned(),
        documents: size.documents,
        words: size.words,
        tokens: size.tokens,
    };
    CorpusResult {
        name: name.to_owned(),
        vocabulary: manifest.vocabulary_size,
        splits: manifest.splits.iter().map(split).collect(),
    }
}

impl Made<'_> {
    /// The classes of the MefMax methods, those of Algorithm 1 first.
    pub(super) fn classes(self) -> Result<Vec<ClassesResult>, Error> {
        let mut all = Vec::new();
        for method in [Method::Greedy, Method::Author, Method::Exact] {
            if let Some(folder) = self.folder(&Purpose::Classes(CorpusRole::Main, method, None)) {
                all.push(classes(&ClassSelection::load(regular_file(
                    &folder.join(files::CLASSES),
                )?)?));
            }
        }
        Ok(all)
    }
}

fn classes(selection: &ClassSelection) -> ClassesResult {
    let summaries = selection.summaries();
    ClassesResult {
        method: selection.method().to_string(),
        objective: selection.objective(),
        tokens: summaries.iter().map(|class| class.tokens).collect(),
        masses: summaries.iter().map(|class| class.mass).collect(),
        efficiencies: summaries.iter().map(|class| class.efficiency).collect(),
        curve: selection.curve().iter().map(|trial| (trial.k, trial.objective)).collect(),
    }
}
