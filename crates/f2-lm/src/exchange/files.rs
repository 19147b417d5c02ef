//! The files of a Hugging Face folder that hold no tensors, and how they are read.

use std::fs;
use std::path::Path;

use f2_corpus::Tokenizer;
use f2_corpus::names::{MERGES, TOKENIZER, VOCABULARY};
use f2_files::{Lock, StagedFolder};

use super::ExchangeError;

/// Its settings in `transformers`.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// The model card.
pub(super) const CARD: &str = "README.md";
/// The tokens that begin, end and pad texts, and the default decoding.
pub(super) const GENERATION_CONFIG: &str = "generation_config.json";

/// The tokenizer of a model with `rows` token vectors.
pub(super) fn read_tokenizer(folder: &Path, rows: usize) -> Result<Tokenizer, ExchangeError> {
    let [whole, vocabulary, merges] = [TOKENIZER, VOCABULARY, MERGES].map(|name| folder.join(name));
    let (path, tokenizer) = if whole.exists() {
        check_is_file(&whole)?;
        let tokenizer = Tokenizer::load(&whole)?;
        (whole, tokenizer)
    } else if vocabulary.exists() && merges.exists() {
        check_is_file(&vocabulary)?;
        check_is_file(&merges)?;
        let tokenizer = Tokenizer::load_vocabulary_and_merges(&vocabulary, &merges)?;
        (vocabulary, tokenizer)
    } else {
        return Err(ExchangeError::NotAFolder {
            path: folder.to_path_buf(),
            reason: format!("there is no {TOKENIZER} in it, nor {VOCABULARY} and {MERGES}"),
        });
    };
    let tokens = tokenizer.vocabulary_size();
    // Fewer tokens are common: embeddings are padded to a round number.
    if tokens > rows {
        return Err(ExchangeError::TokenizerTooLarge { path, tokens, rows });
    }
    Ok(tokenizer)
}

/// The text of a file.
pub(super) fn read_text(path: &Path) -> Result<String, ExchangeError> {
    check_is_file(path)?;
    Ok(f2_files::read_text(path)?)
}

/// Refuses folders, and pipes, which would block.
fn check_is_file(path: &Path) -> Result<(), ExchangeError> {
    let about = fs::metadata(path).map_err(f2_files::ReadError::of(path))?;
    if about.is_file() { Ok(()) } else { Err(ExchangeError::bad(path, "it is not a file")) }
}

/// Writes a folder that gets its name once it is complete. Whatever has that name by then is kept.
pub(super) fn publish(
    out: &Path,
    write: impl FnOnce(&Path) -> Result<(), ExchangeError>,
) -> Result<(), ExchangeError> {
    let _lock = Lock::beside(out)?;
    check_is_free(out)?;
    let staged = StagedFolder::create(out)?;
    write(staged.path())?;
    // Checked again: minutes may have passed.
    check_is_free(out)?;
    Ok(staged.publish_new()?)
}

/// Refuses a path that exists, unless it is an empty folder.
pub fn check_is_free(out: &Path) -> Result<(), ExchangeError> {
    let is_empty = || out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if out.exists() && !is_empty() {
        return Err(ExchangeError::Exists { path: out.to_path_buf() });
    }
    Ok(())
}
