//! Training counts by rank, with the rank of every id, for frequency bands.

use std::path::{Path, PathBuf};

use f2_corpus::{Corpus, Counts, Ranks, names};
use f2_metrics::Bands;

use crate::failure::Failure;

/// Counts of a training corpus, which turn the ids of texts into ranks.
pub(crate) struct RankedCounts {
    path: PathBuf,
    pub(crate) bands: Bands,
    /// `None` if ids are ranks already.
    rank_of_id: Option<Vec<u32>>,
    ids: usize,
}

impl RankedCounts {
    /// Reads a corpus's `counts.json`, which is indexed by rank, like generated ids, even if the
    /// corpus keeps its tokenizer's ids; or a plain array of counts, indexed by id.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = f2_files::read_text(path)?;
        let (counts, ranks) = if text.trim_start().starts_with('[') {
            let count_of_id: Vec<u64> = serde_json::from_str(&text).map_err(|error| {
                Failure::data(format!("{}: this is no array of counts: {error}", path.display()))
                    .advise("give a corpus's counts.json, or a file like [120, 7, 45]")
            })?;
            let (ranks, counts) = Ranks::by_count(&count_of_id);
            (counts.counts, Some(ranks))
        } else {
            (counts_by_rank(path)?, None)
        };
        let bands = Bands::from_counts(&counts)
            .map_err(|error| Failure::data(format!("{}: {error}", path.display())))
            .map_err(|failure| failure.advise("give the counts of the training corpus"))?;
        let rank_of_id = ranks.map(|ranks| ranks.rank_of_id());
        Ok(Self { path: path.to_path_buf(), bands, rank_of_id, ids: counts.len() })
    }

    /// Turns ids into ranks. `place` gives the file and line of a text, for a message.
    pub(crate) fn rank(
        &self,
        texts: &mut [Vec<u32>],
        place: impl Fn(usize) -> String,
    ) -> Result<(), Failure> {
        for (number, text) in texts.iter_mut().enumerate() {
            for id in text {
                if *id as usize >= self.ids {
                    let message = format!(
                        "{}: the token id {id} is not among the {} ids of {}",
                        place(number),
                        self.ids,
                        self.path.display()
                    );
                    return Err(Failure::data(message)
                        .advise("give the counts of the corpus these ids come from"));
                }
                if let Some(rank_of_id) = &self.rank_of_id {
                    *id = rank_of_id[*id as usize];
                }
            }
        }
        Ok(())
    }
}

/// The counts of a corpus, checked against its manifest, or those of a model.
fn counts_by_rank(path: &Path) -> Result<Vec<u64>, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if path.ends_with(names::COUNTS) && folder.join(names::MANIFEST).exists() {
        return Ok(Corpus::open(folder)?.counts()?.counts);
    }
    Ok(Counts::load(path)?.counts)
}
