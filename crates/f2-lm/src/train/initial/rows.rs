//! Which row of a model's embedding belongs to which token of a corpus.

use f2_corpus::{Corpus, Ranks, Tokenizer};

use super::sha256;
use crate::Error;
use crate::run::SavedModel;
use crate::run::checkpoint::{RANKS, TOKENIZER};
use crate::train::Source;

/// The model's row of each of the corpus's ranks; none where every token has the row of its rank.
/// Rows of the model that no token has are left out.
pub(super) fn find(model: &SavedModel, source: &Source) -> Result<Option<Vec<u32>>, Error> {
    if has_same_files(model, source)? && model.shape.vocabulary == source.record.vocabulary {
        return Ok(None);
    }
    let corpus = Corpus::open(&source.record.path)?;
    let tokenizer = Tokenizer::load(&model.folder.join(TOKENIZER))?;
    let id_of_theirs = tokenizer.ids_of(&corpus.tokenizer()?).map_err(|reason| {
        let (model, corpus) = (model.folder.clone(), source.record.path.clone());
        Error::InitialVocabulary { model, corpus, reason }
    })?;
    let id_of_rank = match corpus.ranks()? {
        Some(ranks) => ranks.id_of_rank,
        None => (0..id_of_theirs.len() as u32).collect(),
    };
    let own_ranks = model.folder.join(RANKS);
    let row_of_id =
        if own_ranks.exists() { Some(Ranks::load(&own_ranks)?.rank_of_id()) } else { None };
    let row = |id: &u32| {
        let own = id_of_theirs[*id as usize];
        row_of_id.as_ref().map_or(own, |row_of_id| row_of_id[own as usize])
    };
    let rows: Vec<u32> = id_of_rank.iter().map(row).collect();
    let same = rows.iter().copied().eq(0..model.shape.vocabulary as u32);
    Ok((!same).then_some(rows))
}

/// Whether tokenizer and ranks are equal byte for byte, as they are on the model's own corpus.
fn has_same_files(model: &SavedModel, source: &Source) -> Result<bool, Error> {
    for name in [TOKENIZER, RANKS] {
        let paths = [model.folder.join(name), source.record.path.join(name)];
        let [ours, theirs] = paths.map(|path| path.exists().then(|| sha256(&path)).transpose());
        if ours? != theirs? {
            return Ok(false);
        }
    }
    Ok(true)
}
