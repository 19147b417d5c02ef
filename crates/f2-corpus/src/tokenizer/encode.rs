//! Fast encoding of many texts, with the same ids as the `tokenizers` library.

use rustc_hash::FxHashMap;
use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::BPE;
use tokenizers::{Model as _, PreTokenizerWrapper};

use super::pretokens::pretokens;
use super::{Tokenizer, byte_alphabet, failure};
use crate::error::Result;

/// The most words in the cache. At about 80 bytes each, it stays below 50 MB per thread.
const REMEMBERED_WORDS: usize = 1 << 19;

/// Longer words are rare and not worth caching.
const LONGEST_REMEMBERED: usize = 64;

/// Encodes many texts on one thread with a cache of words.
///
/// The ids are always those of [`Tokenizer::encode`]. Text follows Zipf's law, so nearly every word
/// has occurred before and costs one look-up.
#[derive(Debug)]
pub struct Encoder {
    tokenizer: Tokenizer,
    /// The fast path; `None` for tokenizers that do not support it.
    words: Option<WordEncoder>,
    /// Texts that contain one of these are encoded by the library.
    added_tokens: Vec<String>,
}

impl Encoder {
    pub(crate) fn new(tokenizer: &Tokenizer) -> Self {
        let added = tokenizer.inner.get_added_tokens_decoder();
        Self {
            tokenizer: tokenizer.clone(),
            words: WordEncoder::for_tokenizer(tokenizer),
            added_tokens: added.into_values().map(|token| token.content).collect(),
        }
    }

    /// Whether a long text may be encoded in parts, cut where GPT-2's pre-tokenizer always cuts.
    pub(crate) fn takes_parts(&self) -> bool {
        self.words.is_some()
    }

    /// Appends the ids of `text` to `ids`.
    pub fn encode(&mut self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        match &mut self.words {
            Some(words) if !self.added_tokens.iter().any(|token| text.contains(token)) => {
                pretokens(text).try_for_each(|word| words.encode(word, ids))
            }
            _ => {
                ids.extend(self.tokenizer.encode(text)?);
                Ok(())
            }
        }
    }
}

/// A byte-level BPE model with a cache of words.
#[derive(Debug)]
struct WordEncoder {
    model: BPE,
    /// Start and end of each cached word's ids in `ids`.
    places: FxHashMap<Box<str>, (u32, u32)>,
    ids: Vec<u32>,
    spelling: String,
}

impl WordEncoder {
    /// The fast path supports tokenizers like GPT-2's: byte-level BPE without dropout, normaliser
    /// or prefix space.
    fn for_tokenizer(tokenizer: &Tokenizer) -> Option<Self> {
        let inner = &tokenizer.inner;
        let (ModelWrapper::BPE(model), None) = (inner.get_model(), inner.get_normalizer()) else {
            return None;
        };
        let Some(PreTokenizerWrapper::ByteLevel(rule)) = inner.get_pre_tokenizer() else {
            return None;
        };
        let deterministic = model.dropout.is_none_or(|dropout| dropout == 0.0);
        if rule.add_prefix_space || !rule.use_regex || !deterministic {
            return None;
        }
        let mut model = model.clone();
        model.resize_cache(0);
        Some(Self { model, places: FxHashMap::default(), ids: Vec::new(), spelling: String::new() })
    }

    fn encode(&mut self, word: &str, out: &mut Vec<u32>) -> Result<()> {
        if let Some(&(start, end)) = self.places.get(word) {
            out.extend_from_slice(&self.ids[start as usize..end as usize]);
            return Ok(());
        }
        self.spelling.clear();
        byte_alphabet::spell(word, &mut self.spelling);
        let tokens = self.model.tokenize(&self.spelling);
        let tokens = tokens.map_err(|reason| failure("encoding", reason))?;
        out.extend(tokens.iter().map(|token| token.id));
        if word.len() <= LONGEST_REMEMBERED {
            self.remember(word, tokens.iter().map(|token| token.id));
        }
        Ok(())
    }

    fn remember(&mut self, word: &str, ids: impl Iterator<Item = u32>) {
        if self.places.len() >= REMEMBERED_WORDS {
            self.places.clear();
            self.ids.clear();
        }
        let start = self.ids.len() as u32;
        self.ids.extend(ids);
        self.places.insert(word.into(), (start, self.ids.len() as u32));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::AddedToken;

    use super::super::tests::example;
    use super::*;

    fn encoded(encoder: &mut Encoder, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        encoder.encode(text, &mut ids).unwrap();
        ids
    }

    proptest! {
        #[test]
        fn gives_the_ids_of_the_library(texts in prop::collection::vec("(the |cat|'s| mat|\n|\\PC){0,12}", 4)) {
            let tokenizer = example();
            let mut encoder = tokenizer.encoder();
            prop_assert!(encoder.words.is_some());
            for text in texts.iter().chain(&texts) {
                prop_assert_eq!(encoded(&mut encoder, text), tokenizer.encode(text).unwrap());
            }
        }
    }

    #[test]
    fn special_tokens_in_the_text_stay_whole() {
        let mut tokenizer = example();
        let end = AddedToken::from("<|endoftext|>", true);
        tokenizer.inner.add_special_tokens([end]).unwrap();
        let text = "the cat<|endoftext|>the mat";
        let ids = encoded(&mut tokenizer.encoder(), text);
        assert_eq!(ids, tokenizer.encode(text).unwrap());
        assert!(ids.contains(&tokenizer.token_id("<|endoftext|>").unwrap()));
    }

    #[test]
    fn other_pretokenizers_take_the_library_way() {
        let mut tokenizer = example();
        let rule = tokenizers::pre_tokenizers::byte_level::ByteLevel::new(true, true, true);
        tokenizer.inner.with_pre_tokenizer(Some(rule));
        let mut encoder = tokenizer.encoder();
        assert!(encoder.words.is_none());
        assert_eq!(encoded(&mut encoder, "the cat"), tokenizer.encode("the cat").unwrap());
    }
}
