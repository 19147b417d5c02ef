//! The token ids of a corpus as those of a model with the same tokenizer.

use std::path::Path;

use f2_corpus::{Corpus, Ranks, Tokenizer};
use f2_files::{FileRecord, ReadError, regular_file};

use super::SavedModel;
use super::checkpoint::{RANKS, TOKENIZER};
use crate::Error;

/// The model's id of each id of a corpus; `None` if all tokens have the same ids in both.
///
/// Ids are frequency ranks, so the same tokenizer has other ids in every corpus.
pub(crate) fn find(model: &SavedModel, corpus: &Corpus) -> Result<Option<Vec<u32>>, Error> {
    if has_same_files(&model.folder, corpus.folder())? {
        return Ok(None);
    }
    let tokenizer = Tokenizer::load(regular_file(&model.folder.join(TOKENIZER))?)?;
    let id_of_theirs = tokenizer.ids_of(&corpus.tokenizer()?).map_err(|reason| {
        let (model, corpus) = (model.folder.clone(), corpus.folder().to_path_buf());
        Error::ForeignCorpus { corpus, model, reason }
    })?;
    let id_of_rank = match corpus.ranks()? {
        Some(ranks) => ranks.id_of_rank,
        None => (0..id_of_theirs.len() as u32).collect(),
    };
    let own_ranks = model.folder.join(RANKS);
    let rank_of_id =
        if own_ranks.exists() { Some(Ranks::load(&own_ranks)?.rank_of_id()) } else { None };
    let own = |id: &u32| {
        let own = id_of_theirs[*id as usize];
        rank_of_id.as_ref().map_or(own, |rank_of_id| rank_of_id[own as usize])
    };
    Ok(Some(id_of_rank.iter().map(own).collect()))
}

/// Whether tokenizer and ranks in two folders are equal byte for byte, as they are in a model's own
/// corpus and in all models trained on it.
pub(crate) fn has_same_files(ours: &Path, theirs: &Path) -> Result<bool, Error> {
    for name in [TOKENIZER, RANKS] {
        let [ours, theirs] = [ours, theirs].map(|folder| {
            let path = folder.join(name);
            path.exists().then(|| FileRecord::of(&path).map_err(ReadError::of(&path))).transpose()
        });
        if ours?.map(|file| file.sha256) != theirs?.map(|file| file.sha256) {
            return Ok(false);
        }
    }
    Ok(true)
}
