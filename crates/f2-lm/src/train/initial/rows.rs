//! Which row of a model's embedding belongs to which token of a corpus.

use f2_corpus::Corpus;

use crate::Error;
use crate::run::{SavedModel, corpus_ids};
use crate::train::TrainingCorpus;

/// The model's row of each of the corpus's ranks; `None` if every token has the row of its rank.
/// Rows of the model without a token are left out.
pub(super) fn find(model: &SavedModel, source: &TrainingCorpus) -> Result<Option<Vec<u32>>, Error> {
    let corpus = Corpus::open(&source.record.path)?;
    let renamed = corpus_ids::find(model, &corpus).map_err(|error| match error {
        Error::ForeignCorpus { corpus, model, reason } => {
            Error::InitialVocabulary { model, corpus, reason }
        }
        error => error,
    })?;
    let rows = renamed.unwrap_or_else(|| (0..source.record.vocabulary as u32).collect());
    let same = rows.iter().copied().eq(0..model.shape.vocabulary as u32);
    Ok((!same).then_some(rows))
}
