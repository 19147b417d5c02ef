//! Byte-level BPE: reading, training and applying tokenizers.

mod byte_alphabet;
mod encode;
mod matching;
mod pair_of_files;
pub(crate) mod pretokens;
mod rename;
mod sound;
mod train;
mod word_file;

use std::path::Path;

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::error::{Error, Result};

pub use encode::Encoder;
use sound::guarded;
pub use train::WordCounts;
pub(crate) use train::train;

/// GPT-2's special token that ends a text.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// Text to ids and back, in the format of Hugging Face tokenizers.
///
/// Special tokens are encoded where they occur in the text and never added.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = f2_files::read_bytes(path)?;
        // Some editors write a byte order mark, which is not valid JSON.
        Self::from_bytes(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes), path)
    }

    /// Parses the content of the `tokenizer.json` at `path`.
    pub(crate) fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        Self::from_json(bytes).map_err(|reason| failure(path.display(), reason))
    }

    /// Reads GPT-2's pair of files, `vocab.json` and `merges.txt`.
    pub fn load_vocabulary_and_merges(vocabulary: &Path, merges: &Path) -> Result<Self> {
        let origin = format!("{} and {}", vocabulary.display(), merges.display());
        let [vocabulary, merges] = [vocabulary, merges].map(f2_files::read_text);
        let (vocabulary, merges) = (vocabulary?, merges?);
        let model = guarded(|| pair_of_files::model(&vocabulary, &merges));
        let tokenizer = model.map(Self::byte_level).map_err(|reason| failure(origin, reason))?;
        // The pair of files cannot mark this token as special; GPT-2's own code does.
        match tokenizer.token_id(END_OF_TEXT) {
            Some(_) => tokenizer.with_special_token(END_OF_TEXT),
            None => Ok(tokenizer),
        }
    }

    /// A byte-level tokenizer like GPT-2's around a BPE model.
    fn byte_level(model: BPE) -> Self {
        let mut inner = tokenizers::Tokenizer::new(model);
        inner.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        inner.with_decoder(Some(ByteLevel::new(false, true, true)));
        Self { inner }
    }

    fn from_json(bytes: &[u8]) -> tokenizers::Result<Self> {
        // The library panics on some kinds of broken JSON.
        sound::check(&serde_json::from_slice(bytes)?)?;
        let mut inner = guarded(|| tokenizers::Tokenizer::from_bytes(bytes))?;
        // Shards hold whole texts: truncation and padding are for inference.
        inner.with_truncation(None)?;
        inner.with_padding(None);
        Ok(Self { inner })
    }

    /// The `tokenizer.json` of this tokenizer.
    pub fn to_json(&self) -> String {
        self.inner.to_string(true).expect("a tokenizer always has a JSON form")
    }

    /// One more than the largest id.
    pub fn vocabulary_size(&self) -> usize {
        let vocabulary = self.inner.get_vocab(true);
        vocabulary.values().max().map_or(0, |&largest| largest as usize + 1)
    }

    /// The ids of a text. For many texts, an [`Encoder`] is far faster.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = guarded(|| self.inner.encode_fast(text, false));
        Ok(encoding.map_err(|reason| failure("encoding", reason))?.get_ids().to_vec())
    }

    /// The text of some ids. Bytes that are not UTF-8 become replacement characters.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let text = guarded(|| self.inner.decode(ids, false));
        text.map_err(|reason| failure("decoding", reason))
    }

    /// The text of one token, `None` if no token has this id.
    pub fn token_text(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)?;
        self.decode(&[id]).ok()
    }

    /// The id of a token, such as a special token; `None` if there is none of that name.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The same tokenizer with one more special token, which keeps its id or takes the next free
    /// one.
    pub(crate) fn with_special_token(mut self, token: &str) -> Result<Self> {
        let token = tokenizers::AddedToken::from(token, true);
        self.inner
            .add_special_tokens([token])
            .map_err(|reason| failure("special token", reason))?;
        Ok(self)
    }

    /// An encoder for one thread.
    pub fn encoder(&self) -> Encoder {
        Encoder::new(self)
    }
}

fn failure(origin: impl std::fmt::Display, reason: impl std::fmt::Display) -> Error {
    Error::Tokenizer { origin: origin.to_string(), reason: reason.to_string() }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A tokenizer that learned a little English.
    pub(crate) fn example() -> Tokenizer {
        let mut words = WordCounts::default();
        let text =
            "the cat sat on the mat and the rat sat on the cat, the cats' mat isn't 12 or 21";
        for _ in 0..3 {
            words.add(text);
        }
        train(words, 300, &|| false).unwrap()
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in any::<String>()) {
            let tokenizer = example();
            prop_assert_eq!(tokenizer.decode(&tokenizer.encode(&text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn survives_its_json_form() {
        let tokenizer = example();
        let again = Tokenizer::from_json(tokenizer.to_json().as_bytes()).unwrap();
        assert_eq!(again.to_json(), tokenizer.to_json());
        assert_eq!(again.vocabulary_size(), tokenizer.vocabulary_size());
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let json = example().to_json();
        std::fs::write(&path, format!("\u{feff}{json}")).unwrap();
        assert_eq!(Tokenizer::load(&path).unwrap().to_json(), json);
    }

    #[test]
    fn a_file_that_is_no_tokenizer_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let broken = example().to_json().replacen("\"decoder\": {", "\"decoder\": {:", 1);
        for text in ["{}", &broken] {
            std::fs::write(&path, text).unwrap();
            let message = Tokenizer::load(&path).unwrap_err().to_string();
            assert!(message.contains("tokenizer.json"), "{message}");
        }
    }
}
