//! Counts and tokens of a corpus, or counts alone.

use std::path::Path;

use f2_classes::{RankCounts, read_counts};
use f2_corpus::{Corpus, Tokenizer};

use super::failure;
use crate::failure::Failure;

/// Counts, with the text of their tokens if it is known.
pub(super) struct CountsSource {
    pub(super) counts: RankCounts,
    tokens: Option<Tokens>,
}

/// The tokens of a corpus, by rank.
struct Tokens {
    tokenizer: Tokenizer,
    /// The tokenizer's id of each rank, if ids are not ranks.
    ids: Option<Vec<u32>>,
}

impl CountsSource {
    pub(super) fn file(path: &Path) -> Result<Self, Failure> {
        Ok(Self { counts: read_counts(path).map_err(failure)?, tokens: None })
    }

    pub(super) fn corpus(folder: &Path) -> Result<Self, Failure> {
        let advice = format!("make a corpus with `f2 prepare TEXT --out {}`", folder.display());
        let broken = |error: f2_corpus::Error| Failure::data(error).advise(&advice);
        let corpus = Corpus::open(folder).map_err(broken)?;
        let counts = corpus.counts().map_err(broken)?.counts;
        let ids = corpus.ranks().map_err(broken)?.map(|ranks| ranks.id_of_rank);
        let tokenizer = corpus.tokenizer().map_err(broken)?;
        let counts = RankCounts::new(&counts).map_err(failure)?;
        Ok(Self { counts, tokens: Some(Tokens { tokenizer, ids }) })
    }

    pub(super) fn knows_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// A token as text, quoted so that spaces show.
    pub(super) fn text(&self, rank: usize) -> String {
        let text = self.tokens.as_ref().and_then(|tokens| {
            let id = tokens.ids.as_ref().map_or(rank as u32, |ids| ids[rank]);
            tokens.tokenizer.token_text(id)
        });
        text.map_or_else(String::new, |text| format!("{text:?}"))
    }
}
