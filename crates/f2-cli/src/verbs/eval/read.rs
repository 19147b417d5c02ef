//! The texts to score, and remarks on unusual ones.

use std::path::Path;

use f2_corpus::Tokenizer;
use f2_metrics::Convention;

use super::Eval;
use crate::failure::Failure;
use crate::ranked_counts::RankedCounts;
use crate::texts::{Splitting, TextReader, Texts};

/// Sets of texts whose sizes differ by more than this factor get a remark.
const UNLIKE_SIZES: usize = 2;

impl Eval {
    /// How text becomes tokens, if a flag says so.
    pub(super) fn splitting(&self) -> Result<Option<Splitting>, Failure> {
        Ok(match &self.tokenizer {
            Some(path) => Some(Splitting::Tokenizer(Box::new(Tokenizer::load(path)?))),
            None => self.words.then_some(Splitting::Words),
        })
    }

    /// Reads a file, and reports unusual texts.
    pub(super) fn read(
        &self,
        reader: &mut TextReader,
        path: &Path,
        counts: Option<&RankedCounts>,
        references: Option<&Texts>,
    ) -> Result<Texts, Failure> {
        let mut texts = reader.read(path)?;
        if texts.given_as_ids && (self.words || self.tokenizer.is_some()) {
            return Err(Failure::usage(format!("{} holds ids, not text to split", path.display()))
                .advise("leave `--words` and `--tokenizer` out"));
        }
        if let Some(references) = references {
            check_alike(references, &texts)?;
        }
        if let Some(counts) = counts {
            if !texts.given_as_ids && self.tokenizer.is_none() {
                return Err(Failure::usage("words cannot be looked up in counts of tokens")
                    .advise("give the corpus's tokenizer with `--tokenizer`"));
            }
            texts.own_ids = Some(texts.ids.clone());
            let mut ids = std::mem::take(&mut texts.ids);
            counts.rank(&mut ids, |number| texts.place(number))?;
            texts.ids = ids;
        }
        self.remark(&texts, references);
        Ok(texts)
    }

    fn remark(&self, texts: &Texts, references: Option<&Texts>) {
        let (path, count) = (texts.path.display(), texts.ids.len());
        match texts.shorter_than(1) {
            0 => {}
            empty => remark!("note: {path}: {empty} of {count} texts are empty"),
        }
        let (shortest, metrics) = match self.convention {
            Convention::Paper => (6, "and are left out of Distinct"),
            Convention::Textbook => (self.orders.into(), "and lack n-grams of some order"),
        };
        match texts.shorter_than(shortest) {
            0 => {}
            short => remark!(
                "note: {path}: {short} of {count} texts have fewer than {shortest} tokens {metrics}"
            ),
        }
        let human = references.map_or(count, |references| references.ids.len());
        if human.max(count) > UNLIKE_SIZES * human.min(count) {
            remark!(
                "note: {path}: texts {count}, references {human}; Self-BLEU, Uniq and KLD depend \
                 on the number of texts"
            );
        }
    }
}

fn check_alike(references: &Texts, texts: &Texts) -> Result<(), Failure> {
    if references.given_as_ids == texts.given_as_ids {
        return Ok(());
    }
    let (with_ids, with_text) =
        if texts.given_as_ids { (texts, references) } else { (references, texts) };
    let message = format!(
        "{} holds ids and {} holds text, which cannot be compared",
        with_ids.path.display(),
        with_text.path.display()
    );
    Err(Failure::data(message).advise("give both as ids, or both as text"))
}
