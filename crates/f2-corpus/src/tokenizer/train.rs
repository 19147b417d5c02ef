//! Training a byte-level BPE from word counts.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

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

/// The trainer counts pairs in 32-bit signed integers.
const MOST_PAIRS: u64 = i32::MAX as u64;

/// How often to check for an interruption.
const POLL: Duration = Duration::from_millis(50);

/// Longer words are split into pieces of this many bytes for training: each merge scans the whole
/// word, so the time grows with the square of its length. No natural word is this long.
pub(super) const LONGEST_WORD: usize = 512;

/// How often each word (pre-token) occurs: all that BPE training needs from a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    pub(super) counts: FxHashMap<CompactString, u64>,
}

impl WordCounts {
    /// Counts the words of one text.
    pub(crate) fn add(&mut self, text: &str) {
        for word in pretokens(text).flat_map(|word| pieces(word, LONGEST_WORD)) {
            match self.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => _ = self.counts.insert(CompactString::new(word), 1),
            }
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.counts.is_empty() {
            *self = other;
            return;
        }
        for (word, count) in other.counts {
            let total = self.counts.entry(word).or_default();
            *total = total.saturating_add(count);
        }
    }

    /// Number of different words.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether no word was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Divides all counts so that no pair of tokens occurs more often than the trainer can count,
    /// and drops words whose count becomes 0; returns the divisor, 1 if none was needed.
    ///
    /// A pair of tokens occurs at most as often as the pair of bytes at their boundary, so the
    /// count of the most frequent pair of bytes is an upper bound.
    pub(crate) fn fit(&mut self) -> u64 {
        let divisor = self.most_frequent_pair().div_ceil(MOST_PAIRS.into()).max(1);
        let divisor = u64::try_from(divisor).unwrap_or(u64::MAX);
        if divisor > 1 {
            self.counts.retain(|_, count| {
                *count /= divisor;
                *count > 0
            });
        }
        divisor
    }

    fn most_frequent_pair(&self) -> u128 {
        let mut pairs = vec![0_u128; 1 << 16];
        for (word, &count) in &self.counts {
            for pair in word.as_bytes().windows(2) {
                pairs[usize::from(u16::from_le_bytes([pair[0], pair[1]]))] += u128::from(count);
            }
        }
        pairs.into_iter().max().unwrap_or(0)
    }

    /// An upper bound on the number of merges: each makes some word one token shorter.
    fn most_merges(&self) -> usize {
        self.counts.keys().map(|word| word.len() - 1).sum()
    }

    /// The counts in the trainer's form, with words spelled in the byte alphabet.
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

/// A word in pieces of at most `longest` bytes, cut between characters.
fn pieces(word: &str, longest: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let end = (0..=longest.min(rest.len())).rev().find(|&at| rest.is_char_boundary(at));
        let (piece, after) = rest.split_at(end.unwrap_or(0));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Trains a byte-level BPE of at most `vocabulary_size` tokens, fewer if the words have no more
/// pairs to merge. The counts must [fit](WordCounts::fit). Stops once `interrupted` returns true.
pub(crate) fn train(
    words: WordCounts,
    vocabulary_size: usize,
    interrupted: &dyn Fn() -> bool,
) -> Result<Tokenizer> {
    if vocabulary_size < 256 {
        return Err(Error::VocabularyTooSmall { asked: vocabulary_size });
    }
    // The trainer allocates memory for the requested size.
    let vocabulary_size = vocabulary_size.min(256 + words.most_merges());
    let (sender, receiver) = mpsc::channel();
    let words = Arc::new(words.spelled());
    let learn = move || {
        let mut model = BPE::default();
        let trained = trainer(vocabulary_size).do_train(&words, &mut model);
        // After an interruption the receiver is gone.
        let _ = sender.send(trained.map(|_| model));
    };
    // The library cannot be stopped: an interruption leaves its thread behind. If no thread can be
    // spawned, it runs here and cannot be interrupted.
    if std::thread::Builder::new().spawn(learn.clone()).is_err() {
        learn();
    }
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(trained) => {
                let model = trained.map_err(|reason| failure("training the tokenizer", reason))?;
                return Ok(Tokenizer::byte_level(model));
            }
            Err(RecvTimeoutError::Timeout) if interrupted() => return Err(Error::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the trainer of tokenizers panicked"),
        }
    }
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

    /// The same training through the library's public interface.
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
        let ours = train(words, 290, &|| false).unwrap();
        assert_eq!(ours.to_json(), by_the_library(text, 290).to_json());
        assert!(ours.vocabulary_size() > 256);
    }

    #[test]
    fn stops_where_the_text_gives_no_more() {
        let mut words = WordCounts::default();
        words.add("aa aa");
        assert_eq!(train(words, 30_000, &|| false).unwrap().vocabulary_size(), 257);
    }

    #[test]
    fn a_vocabulary_beyond_all_merges_allocates_no_memory_for_it() {
        for vocabulary_size in [1_000_000_000, usize::MAX] {
            let mut words = WordCounts::default();
            words.add("aa aa");
            assert_eq!(train(words, vocabulary_size, &|| false).unwrap().vocabulary_size(), 257);
        }
    }

    #[test]
    fn an_endless_word_is_learned_from_in_pieces() {
        let letters = ["A", "C", "G", "T", "é"];
        let endless: String = (0..40_000_usize).map(|at| letters[at * at / 7 % 5]).collect();
        let mut words = WordCounts::default();
        words.add(&endless);
        let lengths = words.counts.iter().map(|(word, count)| word.len() * *count as usize);
        assert_eq!(lengths.sum::<usize>(), endless.len());
        assert!(words.counts.keys().all(|word| word.len() <= LONGEST_WORD));
        assert!(train(words, 400, &|| false).unwrap().vocabulary_size() > 256);
    }

    #[test]
    fn an_interruption_is_heard_while_it_learns() {
        let mut words = WordCounts::default();
        (0..200_000_u32).for_each(|number| words.add(&format!("word{number} {}", number * 7919)));
        let interrupted = train(words, 30_000, &|| true).unwrap_err();
        assert!(matches!(interrupted, Error::Interrupted), "{interrupted}");
    }

    #[test]
    fn refuses_less_than_the_bytes() {
        let message = train(WordCounts::default(), 255, &|| false).unwrap_err().to_string();
        assert!(message.contains("255"), "{message}");
    }

    fn counted(words: &[(&str, u64)]) -> WordCounts {
        let counts = words.iter().map(|&(word, count)| (CompactString::new(word), count));
        WordCounts { counts: counts.collect() }
    }

    /// In 32 bits, `ab` would seem rarer than `cd`, and the count of `ef` would wrap to 0.
    #[test]
    fn pairs_beyond_32_bits_are_learned_in_their_order() {
        let text = [("ab", 3_u64 << 31), ("abx", 9_000_000), ("cd", 1 << 31), ("ef", 1 << 32)];
        let mut words = counted(&text);
        assert_eq!(words.fit(), 4);
        assert_eq!(words.counts["ab"], 3 << 29);
        let learned = train(words, 258, &|| false).unwrap();
        assert!(learned.token_id("ab").is_some() && learned.token_id("ef").is_some());
        assert!(learned.token_id("cd").is_none());
    }

    #[test]
    fn counts_are_divided_only_where_they_must_be() {
        let mut words = counted(&[("ab", MOST_PAIRS - 5), ("aba", 5), ("a", u64::MAX), ("c", 1)]);
        assert_eq!(words.fit(), 1);
        assert_eq!(words.counts.len(), 4);
        let mut words = counted(&[("abab", MOST_PAIRS / 2 + 1), ("c", 1), ("dd", 2)]);
        assert_eq!(words.fit(), 2);
        assert_eq!(words.counts.len(), 2, "a word counted once is left with nothing");
        let mut words = counted(&[("ab", u64::MAX), ("xab", u64::MAX)]);
        assert!(words.fit() > u64::MAX / MOST_PAIRS);
        assert!(words.most_frequent_pair() <= MOST_PAIRS.into());
    }

    proptest::proptest! {
        /// The bound holds for all merges: with overflow checks the trainer would panic otherwise.
        #[test]
        fn whatever_is_divided_can_be_counted(
            words in proptest::collection::vec(("[ab]{1,12}", 1_u64 << 20..1 << 33), 1..12),
        ) {
            let words: Vec<_> = words.iter().map(|(word, count)| (word.as_str(), *count)).collect();
            let mut words = counted(&words);
            words.fit();
            proptest::prop_assert!(words.most_frequent_pair() <= MOST_PAIRS.into());
            train(words, 300, &|| false).unwrap();
        }
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
