use ahash::AHashMap;
use compact_str::CompactString;
use rustc_hash::FxHashMap;
use tokenizers::models::bpe::{BPE, BpeTrainer};

use super::pretokens::pretokens;
use super::{Tokenizer, byte_alphabet, failure};
use crate::error::{Error, Result};

/// A pair of tokens seen less often than this is never merged, as in Hugging Face's own
/// byte-level trainer.
const MINIMUM_PAIR_COUNT: u64 = 2;

/// How often each word (pre-token) occurs: all that BPE needs to know of a text.
#[derive(Debug, Default)]
pub(crate) struct WordCounts {
    counts: FxHashMap<CompactString, u64>,
}

impl WordCounts {
    /// Counts the words of one text.
    pub(crate) fn add(&mut self, text: &str) {
        for word in pretokens(text) {
            match self.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => _ = self.counts.insert(CompactString::new(word), 1),
            }
        }
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.counts.is_empty() {
            *self = other;
            return;
        }
        for (word, count) in other.counts {
            *self.counts.entry(word).or_default() += count;
        }
    }

    /// Whether no word was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The counts as the trainer takes them: words spelled in the byte alphabet.
    fn spelled(self) -> AHashMap<CompactString, u64> {
        let mut spelling = String::new();
        let spelled = self.counts.into_iter().map(|(word, count)| {
            spelling.clear();
            byte_alphabet::spell(&word, &mut spelling);
            (CompactString::new(&spelling), count)
        });
        spelled.collect()
    }
}

/// Learns a byte-level BPE of at most `vocabulary_size` tokens; fewer where the words hold no
/// more pairs.
pub(crate) fn train(words: WordCounts, vocabulary_size: usize) -> Result<Tokenizer> {
    if vocabulary_size < 256 {
        return Err(Error::VocabularyTooSmall { asked: vocabulary_size });
    }
    let mut model = BPE::default();
    trainer(vocabulary_size)
        .do_train(&words.spelled(), &mut model)
        .map_err(|reason| failure("training the tokenizer", reason))?;
    Ok(Tokenizer::byte_level(model))
}

fn trainer(vocabulary_size: usize) -> BpeTrainer {
    BpeTrainer::builder()
        .vocab_size(vocabulary_size)
        .min_frequency(MINIMUM_PAIR_COUNT)
        .initial_alphabet(byte_alphabet::alphabet().collect())
        .show_progress(false)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same training through the library's own front door.
    fn by_the_library(text: &str, vocabulary_size: usize) -> Tokenizer {
        let mut tokenizer = Tokenizer::byte_level(BPE::default());
        let mut trainer = tokenizers::models::TrainerWrapper::from(trainer(vocabulary_size));
        tokenizer.inner.train(&mut trainer, text.lines()).unwrap();
        tokenizer
    }

    #[test]
    fn learns_what_the_library_learns() {
        let text = "low lower lowest\nnew newer newest wide wider widest\nслово слова";
        let mut words = WordCounts::default();
        text.lines().for_each(|line| words.add(line));
        let ours = train(words, 290).unwrap();
        assert_eq!(ours.to_json(), by_the_library(text, 290).to_json());
        assert!(ours.vocabulary_size() > 256);
    }

    #[test]
    fn stops_where_the_text_gives_no_more() {
        let mut words = WordCounts::default();
        words.add("aa aa");
        assert_eq!(train(words, 30_000).unwrap().vocabulary_size(), 257);
    }

    #[test]
    fn refuses_less_than_the_bytes() {
        let message = train(WordCounts::default(), 255).unwrap_err().to_string();
        assert!(message.contains("255"), "{message}");
    }

    #[test]
    fn merging_adds_up() {
        let (mut left, mut right) = (WordCounts::default(), WordCounts::default());
        left.add("a b");
        right.add("a c");
        left.merge(right);
        assert_eq!(left.counts["a"], 2);
        assert_eq!(left.counts[" c"], 1);
    }
}
