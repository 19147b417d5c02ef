//! A token source for tests, of documents of given lengths.

use std::ops::Range;

use super::TokenSource;

/// Documents of these lengths; every token is its own place in the text.
pub(crate) struct Documents(pub(crate) Vec<u64>);

impl TokenSource for Documents {
    fn len(&self) -> u64 {
        self.0.iter().sum()
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        range.zip(out).for_each(|(place, out)| *out = place as u32);
    }

    fn documents(&self) -> Vec<Range<u64>> {
        let ends = self.0.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        ends.zip(&self.0).map(|(end, length)| end - length..end).collect()
    }
}
