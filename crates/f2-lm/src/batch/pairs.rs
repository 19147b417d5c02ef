//! Pairs of a source and a target, each a document with a separator in between: where the target
//! begins, and how pairs longer than a window are truncated.

use std::ops::Range;

use super::TokenSource;
use crate::Error;

/// The tokens of a split, whose documents are pairs if there is a separator.
#[derive(Clone, Debug)]
pub struct SeparatedTokens<S> {
    /// The tokens.
    pub tokens: S,
    /// The token between source and target; `None` if documents are plain text.
    pub separator: Option<u32>,
}

impl<S: TokenSource> TokenSource for SeparatedTokens<S> {
    fn len(&self) -> u64 {
        self.tokens.len()
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        self.tokens.read(range, out);
    }

    fn documents(&self) -> Vec<Range<u64>> {
        self.tokens.documents()
    }

    fn separator(&self) -> Option<u32> {
        self.separator
    }
}

/// A document that is a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its tokens: source, separator, target, end of text.
    pub tokens: Range<u64>,
    /// Where the separator is.
    pub separator: u64,
}

/// Pairs that are longer than a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortened {
    /// How many lose the beginning of their source.
    pub sources: u64,
    /// How many lose their whole source and the end of their target.
    pub targets: u64,
}

impl Pair {
    /// The pairs of a split. Each has at least one target token, possibly just the end of text.
    pub fn all(text: &dyn TokenSource, separator: u32) -> Result<Vec<Self>, Error> {
        let mut buffer = Vec::new();
        let mut find = |(number, tokens): (usize, Range<u64>)| {
            buffer.resize((tokens.end - tokens.start) as usize, 0);
            text.read(tokens.clone(), &mut buffer);
            let place = buffer.iter().position(|id| *id == separator);
            match place.map(|place| tokens.start + place as u64) {
                Some(separator) if separator + 1 < tokens.end => Ok(Self { tokens, separator }),
                _ => Err(Error::NoTarget { document: number + 1 }),
            }
        };
        text.documents().into_iter().enumerate().map(&mut find).collect()
    }

    /// The part of it in a window of `longest` tokens. The source loses its beginning; if separator
    /// and target alone are longer, the target loses its end.
    pub fn window(&self, longest: u64) -> Range<u64> {
        let Self { tokens, separator } = self;
        let first = tokens.end.saturating_sub(longest).clamp(tokens.start, *separator);
        first..tokens.end.min(first + longest)
    }

    /// How many pairs of a split are cut to windows of `longest` tokens.
    pub fn shortened(all: &[Self], longest: u64) -> Shortened {
        let (mut sources, mut targets) = (0, 0);
        for pair in all {
            let window = pair.window(longest);
            targets += u64::from(window.end < pair.tokens.end);
            sources += u64::from(window.start > pair.tokens.start && window.end == pair.tokens.end);
        }
        Shortened { sources, targets }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::documents_for_tests::Documents;

    proptest! {
        #[test]
        fn a_window_keeps_the_separator_and_as_much_as_fits(
            source in 0_u64..30, target in 1_u64..30, longest in 2_u64..40, before in 0_u64..9,
        ) {
            let pair = Pair { tokens: before..before + source + 1 + target, separator: before + source };
            let window = pair.window(longest);
            let length = window.end - window.start;
            prop_assert_eq!(length, longest.min(source + 1 + target));
            prop_assert!(window.contains(&pair.separator));
            let cut = window.end < pair.tokens.end;
            prop_assert_eq!(cut, target + 1 > longest);
            // The target is only cut when nothing of the source is left.
            prop_assert!(!cut || window.start == pair.separator);
        }
    }

    #[test]
    fn pairs_are_found_by_their_first_separator() {
        // Every token is its own place.
        let text = Documents(vec![4, 3]);
        assert!(matches!(Pair::all(&text, 2), Err(Error::NoTarget { document: 2 })));
        assert!(matches!(Pair::all(&Documents(vec![3]), 2), Err(Error::NoTarget { document: 1 })));
        let found = Pair::all(&Documents(vec![4]), 2).unwrap();
        assert_eq!(found, [Pair { tokens: 0..4, separator: 2 }]);
        let pairs = [(0..9, 2), (9..20, 17), (20..22, 20)];
        let pairs = pairs.map(|(tokens, separator)| Pair { tokens, separator });
        assert_eq!(Pair::shortened(&pairs, 5), Shortened { sources: 1, targets: 1 });
    }
}
