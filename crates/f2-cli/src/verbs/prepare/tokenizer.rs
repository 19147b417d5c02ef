//! The tokenizer of `f2 prepare`: a learned one, files, or the one in a folder.

use std::path::Path;

use f2_corpus::TokenizerChoice;
use f2_corpus::names::{MERGES, TOKENIZER, VOCABULARY};
use f2_files::regular_file;
use f2_lm::run::{CHECKPOINTS, checkpoint};

use super::Prepare;
use crate::failure::Failure;

impl Prepare {
    /// The tokenizer that the flags choose.
    pub(super) fn tokenizer_choice(&self) -> Result<TokenizerChoice, Failure> {
        Ok(match self.tokenizer.as_slice() {
            [] => TokenizerChoice::Train { vocabulary_size: self.vocab_size },
            [vocabulary, merges] => TokenizerChoice::VocabularyAndMerges {
                vocabulary: vocabulary.clone(),
                merges: merges.clone(),
            },
            [folder] if folder.is_dir() => tokenizer_in(folder)?,
            [file, ..] => TokenizerChoice::File(file.clone()),
        })
    }
}

/// The tokenizer in the folder of a corpus, a run or a model, or in any other.
fn tokenizer_in(folder: &Path) -> Result<TokenizerChoice, Failure> {
    let checkpoints = folder.join(CHECKPOINTS);
    let newest = checkpoint::steps(&checkpoints)
        .ok()
        .and_then(|steps| steps.last().map(|&step| checkpoint::path(&checkpoints, step)));
    for place in [Some(folder.to_path_buf()), newest].into_iter().flatten() {
        let [whole, vocabulary, merges] =
            [TOKENIZER, VOCABULARY, MERGES].map(|name| place.join(name));
        if whole.exists() {
            regular_file(&whole)?;
            return Ok(TokenizerChoice::File(whole));
        }
        if vocabulary.exists() && merges.exists() {
            regular_file(&vocabulary)?;
            regular_file(&merges)?;
            return Ok(TokenizerChoice::VocabularyAndMerges { vocabulary, merges });
        }
    }
    let message = format!(
        "{} holds no tokenizer: neither {TOKENIZER} nor {VOCABULARY} and {MERGES}",
        folder.display()
    );
    Err(Failure::data(message).advise("name a corpus, a run, a model, or the file itself"))
}
