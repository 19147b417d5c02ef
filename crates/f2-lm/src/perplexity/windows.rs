//! The windows a text is scored in.

use std::ops::Range;

use f2_engine::Sequences;

use crate::Error;
use crate::batch::{Pair, TokenSource};
use crate::config::{BatchConfig, WindowOrder};

/// Windows of documents are padded to a multiple of this, to keep the number of different shapes
/// small.
const BUCKET: usize = 32;

/// How long windows are and how far apart they begin.
///
/// With a stride as long as the window they are adjacent, and the first token of each is only
/// context. With a shorter stride windows overlap, and every token but the first is scored once,
/// with at least `sequence - stride` tokens before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindows {
    sequence: usize,
    stride: usize,
}

/// Where contexts begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contexts {
    /// Windows cover the whole text, regardless of its documents.
    #[default]
    Text,
    /// Every document is a context of its own. Those with fewer than `shortest` tokens are not
    /// scored: a model trained on documents never saw such short ones.
    Documents {
        /// The fewest tokens of a document that is scored.
        shortest: usize,
    },
    /// Every document is a pair of source and target: the source is context, the target is scored.
    Pairs {
        /// The token between them.
        separator: u32,
    },
}

/// The windows of one text.
#[derive(Clone, Debug)]
pub struct ScoredWindows {
    sliding: SlidingWindows,
    contexts: Contexts,
    /// The parts of the text that are cut into windows: all of it, or its documents.
    parts: Vec<Range<u64>>,
    /// For pairs: one window each, instead of parts.
    pairs: Vec<Window>,
}

/// A window, and the tokens in it that are scored: all but the first, or fewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) tokens: Range<u64>,
    pub(super) scored: Range<u64>,
}

impl SlidingWindows {
    /// Windows for a model with `positions` positions; by default as long as that and without
    /// overlap.
    pub fn new(
        window: Option<usize>,
        stride: Option<usize>,
        positions: usize,
    ) -> Result<Self, Error> {
        let sequence = window.unwrap_or(positions);
        let stride = stride.unwrap_or(sequence);
        let (option, reason) = if !(2..=positions).contains(&sequence) {
            ("window", format!("{sequence} is not from 2 to the model's {positions} positions"))
        } else if !(1..=sequence).contains(&stride) {
            ("stride", format!("{stride} is not from 1 to the window's {sequence}"))
        } else {
            return Ok(Self { sequence, stride });
        };
        Err(Error::Strategy { option, reason })
    }

    /// Tokens in a window.
    pub fn sequence(self) -> usize {
        self.sequence
    }

    /// Tokens from the start of one window to the start of the next.
    pub fn stride(self) -> usize {
        self.stride
    }

    /// The windows of a part of a text.
    fn of(self, part: Range<u64>) -> impl Iterator<Item = Window> {
        let (sequence, stride) = (self.sequence as u64, self.stride as u64);
        let (mut start, mut done) = (part.start, part.start);
        std::iter::from_fn(move || {
            if done >= part.end {
                return None;
            }
            let end = (start + sequence).min(part.end);
            let window = Window { tokens: start..end, scored: done.max(start + 1)..end };
            (done, start) = (end, start + stride);
            Some(window)
        })
        // A last window of a single token has nothing to predict.
        .filter(|window| !window.scored.is_empty())
    }
}

impl Contexts {
    /// The contexts a model is trained with on this text.
    pub fn of_text(text: &dyn TokenSource, batch: &BatchConfig) -> Self {
        text.separator().map_or(Self::of(batch), |separator| Self::Pairs { separator })
    }

    /// The contexts a model is trained with on a text without pairs.
    pub fn of(batch: &BatchConfig) -> Self {
        match batch.order {
            WindowOrder::Documents => Self::Documents { shortest: batch.shortest },
            WindowOrder::Shuffled | WindowOrder::Streams => Self::Text,
        }
    }
}

impl ScoredWindows {
    /// The windows of a text, in which at most `max_tokens` tokens of the scored parts are read (0
    /// reads all).
    pub fn new(
        text: &dyn TokenSource,
        sliding: SlidingWindows,
        contexts: Contexts,
        max_tokens: u64,
    ) -> Result<Self, Error> {
        let most = if max_tokens == 0 { u64::MAX } else { max_tokens.max(2) };
        let parts = match contexts {
            Contexts::Pairs { separator } => {
                let windows = pairs(text, separator, sliding.sequence as u64, most)?;
                return Ok(Self { sliding, contexts, parts: Vec::new(), pairs: windows });
            }
            Contexts::Text if text.len() < 2 => {
                return Err(Error::TooFewTokens { tokens: text.len() });
            }
            Contexts::Text => std::iter::once(0..text.len()).collect(),
            Contexts::Documents { shortest } => long_documents(text, shortest)?,
        };
        Ok(Self { sliding, contexts, parts: limited(parts, most), pairs: Vec::new() })
    }

    /// Tokens in the longest possible window.
    pub fn sequence(&self) -> usize {
        self.sliding.sequence
    }

    /// How many tokens are scored.
    pub fn scored(&self) -> u64 {
        self.windows().map(|window| window.scored.end - window.scored.start).sum()
    }

    /// How many documents are scored; `None` if they are not contexts.
    pub fn documents(&self) -> Option<usize> {
        matches!(self.contexts, Contexts::Documents { .. }).then_some(self.parts.len())
    }

    /// How many pairs are scored; `None` if documents are not pairs.
    pub fn pairs(&self) -> Option<usize> {
        matches!(self.contexts, Contexts::Pairs { .. }).then_some(self.pairs.len())
    }

    pub(super) fn windows(&self) -> impl Iterator<Item = Window> {
        let parts = self.parts.iter().flat_map(|part| self.sliding.of(part.clone()));
        parts.chain(self.pairs.iter().cloned())
    }

    /// The windows in batches of at most `positions` positions, each with its shape. Windows of a
    /// whole text have one length, except the last, and keep their order; those of documents and
    /// pairs are sorted by length, to keep padding small.
    pub(super) fn batches(&self, positions: usize) -> Vec<(Sequences, Vec<Window>)> {
        let mut windows: Vec<Window> = self.windows().collect();
        let length = |window: &Window| (window.tokens.end - window.tokens.start) as usize;
        let padded = |window: &Window| match self.contexts {
            Contexts::Text => self.sliding.sequence,
            Contexts::Documents { .. } | Contexts::Pairs { .. } => {
                length(window).next_multiple_of(BUCKET).min(self.sliding.sequence)
            }
        };
        windows.sort_by_key(|window| std::cmp::Reverse(padded(window)));
        let mut batches = Vec::new();
        let mut left = &windows[..];
        while let Some(longest) = left.first() {
            let length = padded(longest);
            let count = (positions / length).max(1);
            let (batch, rest) = left.split_at(count.min(left.len()));
            batches.push((Sequences { count, length }, batch.to_vec()));
            left = rest;
        }
        batches
    }
}

/// The windows, of at most `longest` tokens each, of the first pairs with at most `most` tokens
/// together, but at least one pair.
fn pairs(
    text: &dyn TokenSource,
    separator: u32,
    longest: u64,
    most: u64,
) -> Result<Vec<Window>, Error> {
    let mut read = 0;
    let window = |pair: &Pair| {
        let tokens = pair.window(longest);
        let scored = pair.separator + 1..tokens.end;
        Window { tokens, scored }
    };
    let fits = |window: &Window| {
        let before = read;
        read += window.tokens.end - window.tokens.start;
        before == 0 || read <= most
    };
    let windows: Vec<Window> =
        Pair::all(text, separator)?.iter().map(window).take_while(fits).collect();
    if windows.is_empty() {
        return Err(Error::TooFewTokens { tokens: text.len() });
    }
    Ok(windows)
}

/// The documents with something to predict and at least `shortest` tokens.
fn long_documents(text: &dyn TokenSource, shortest: usize) -> Result<Vec<Range<u64>>, Error> {
    let documents = text.documents();
    let found = documents.len();
    let shortest = shortest.max(2);
    let long = documents.into_iter().filter(|part| part.end - part.start >= shortest as u64);
    let long: Vec<Range<u64>> = long.collect();
    if long.is_empty() {
        return Err(Error::DocumentsTooShort { documents: found, shortest });
    }
    Ok(long)
}

/// The first parts with at most `most` tokens together; the last of them may be cut.
fn limited(parts: Vec<Range<u64>>, most: u64) -> Vec<Range<u64>> {
    let mut left = most;
    let cut = |part: Range<u64>| {
        let tokens = left.min(part.end - part.start);
        left -= tokens;
        part.start..part.start + tokens
    };
    parts.into_iter().map(cut).take_while(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::documents_for_tests::Documents;

    fn sliding(sequence: usize, stride: usize) -> SlidingWindows {
        SlidingWindows::new(Some(sequence), Some(stride), sequence).unwrap()
    }

    fn scored(windows: &ScoredWindows) -> Vec<u64> {
        windows.windows().flat_map(|window| window.scored).collect()
    }

    proptest! {
        #[test]
        fn every_token_is_scored_once_but_those_without_context(
            tokens in 2_u64..200, sequence in 2_usize..20, stride in 1_usize..20,
        ) {
            let stride = stride.min(sequence);
            let text = Documents(vec![tokens]);
            let windows =
                ScoredWindows::new(&text, sliding(sequence, stride), Contexts::Text, 0).unwrap();
            let follows = stride == sequence;
            let expected: Vec<u64> = (1..tokens)
                .filter(|place| !follows || place % sequence as u64 != 0)
                .collect();
            prop_assert_eq!(windows.scored(), expected.len() as u64);
            prop_assert_eq!(scored(&windows), expected);
            for Window { tokens, scored } in windows.windows() {
                prop_assert!(tokens.start < scored.start && scored.end <= tokens.end);
                prop_assert!(tokens.end - tokens.start <= sequence as u64);
                let context = scored.start - tokens.start;
                let first = tokens.start == 0;
                prop_assert!(first || follows || context >= (sequence - stride) as u64);
            }
        }

        /// No window reaches into another document, and every document is scored as if alone.
        #[test]
        fn documents_are_contexts_of_their_own(
            lengths in prop::collection::vec(0_u64..70, 1..20),
            sequence in 2_usize..40,
            shortest in 0_usize..30,
        ) {
            let songs = Documents(lengths);
            let contexts = Contexts::Documents { shortest };
            let long = |song: &Range<u64>| song.end - song.start >= shortest.max(2) as u64;
            let expected: Vec<u64> = songs
                .documents()
                .into_iter()
                .filter(long)
                .flat_map(|song| {
                    let first = song.start;
                    song.filter(move |place| (place - first) % sequence as u64 != 0)
                })
                .collect();
            let windows = ScoredWindows::new(&songs, sliding(sequence, sequence), contexts, 0);
            let Ok(windows) = windows else {
                prop_assert!(expected.is_empty());
                return Ok(());
            };
            prop_assert_eq!(scored(&windows), expected);
            let batches = windows.batches(100);
            let mut batched: Vec<u64> = Vec::new();
            for (shape, batch) in &batches {
                prop_assert!(shape.positions() <= 100 && batch.len() <= shape.count);
                let longest = batch.iter().map(|window| window.tokens.clone().count()).max();
                prop_assert!(longest.unwrap() <= shape.length && shape.length <= sequence);
                batched.extend(batch.iter().flat_map(|window| window.scored.clone()));
            }
            batched.sort_unstable();
            prop_assert_eq!(batched, scored(&windows));
        }
    }

    #[test]
    fn a_limit_cuts_the_last_part_read() {
        let songs = Documents(vec![5, 1, 4, 6]);
        let read = |contexts, most| {
            let windows = ScoredWindows::new(&songs, sliding(4, 4), contexts, most).unwrap();
            scored(&windows)
        };
        assert_eq!(read(Contexts::Text, 7), [1, 2, 3, 5, 6]);
        let documents = Contexts::Documents { shortest: 0 };
        assert_eq!(read(documents, 7), [1, 2, 3, 7]);
        assert_eq!(read(documents, 0), [1, 2, 3, 7, 8, 9, 11, 12, 13, 15]);
        assert_eq!(read(Contexts::Documents { shortest: 5 }, 0), [1, 2, 3, 11, 12, 13, 15]);
    }

    #[test]
    fn texts_without_anything_to_score_are_refused() {
        let refused = |lengths: &[u64], contexts| {
            let windows =
                ScoredWindows::new(&Documents(lengths.into()), sliding(4, 4), contexts, 0);
            windows.unwrap_err().to_string()
        };
        let documents = Contexts::Documents { shortest: 50 };
        let refused = [
            refused(&[1], Contexts::Text),
            refused(&[49, 12, 3], documents),
            refused(&[1, 1], Contexts::Documents { shortest: 0 }),
        ];
        insta::assert_snapshot!(refused.join("\n"), @r"
        the text has 1 tokens, and nothing to predict after them
        none of the 3 documents of the text has at least 50 tokens, and shorter ones are not scored
        none of the 2 documents of the text has at least 2 tokens, and shorter ones are not scored
        ");
    }
}
