//! Stop sequences: strings that end a text.

use crate::Error;
use crate::run::{TextStream, Vocabulary};

/// Strings that end a text and are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopSequences(Vec<String>);

impl StopSequences {
    /// Empty sequences are dropped: every text would begin with them.
    pub fn new(sequences: impl IntoIterator<Item = String>) -> Self {
        Self(sequences.into_iter().filter(|sequence| !sequence.is_empty()).collect())
    }

    /// Whether there are no stop sequences.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The byte at which the first stop sequence in a text begins. The first `known` bytes are
    /// known not to contain a complete one.
    pub fn find(&self, text: &str, known: usize) -> Option<usize> {
        let first = |sequence: &String| {
            let mut from = (known + 1).saturating_sub(sequence.len()).min(text.len());
            while !text.is_char_boundary(from) {
                from -= 1;
            }
            text[from..].find(sequence.as_str()).map(|place| from + place)
        };
        self.0.iter().filter_map(first).min()
    }

    /// How many bytes at the end of a text may be the beginning of a stop sequence.
    pub fn held_back(&self, text: &str) -> usize {
        let held = |sequence: &String| {
            let beginnings = sequence.char_indices().map(|(end, _)| end).rev();
            beginnings.into_iter().find(|end| text.ends_with(&sequence[..*end])).unwrap_or(0)
        };
        self.0.iter().map(held).max().unwrap_or(0)
    }

    /// The text of some tokens up to the stop sequence that is completed first, and how many of the
    /// tokens begin before that point.
    pub fn cut(&self, vocabulary: &Vocabulary, ids: &[u32]) -> Result<(String, usize), Error> {
        if self.is_empty() {
            return Ok((vocabulary.decode(ids)?, ids.len()));
        }
        let mut stream = vocabulary.stream();
        let (mut text, mut begins, mut end) = (String::new(), Vec::new(), None);
        for id in ids {
            let known = text.len();
            begins.push(known);
            text += &stream.push(*id)?;
            end = self.find(&text, known);
            if end.is_some() {
                break;
            }
        }
        if end.is_none() {
            text += &stream.finish()?;
            end = self.find(&text, 0);
        }
        let Some(end) = end else { return Ok((text, ids.len())) };
        text.truncate(end);
        Ok((text, begins.into_iter().filter(|begin| *begin < end).count()))
    }
}

/// Looks for stop sequences in a text as it is generated.
pub(super) struct StopWatch<'a> {
    stops: &'a StopSequences,
    stream: TextStream<'a>,
    text: String,
}

impl<'a> StopWatch<'a> {
    pub(super) fn new(stops: &'a StopSequences, vocabulary: &'a Vocabulary) -> Self {
        Self { stops, stream: vocabulary.stream(), text: String::new() }
    }

    /// Whether this token completes a stop sequence.
    pub(super) fn ends(&mut self, id: u32) -> Result<bool, Error> {
        let known = self.text.len();
        self.text += &self.stream.push(id)?;
        Ok(self.stops.find(&self.text, known).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sequence_ends_a_text_and_its_beginning_is_held_back() {
        let stops = StopSequences::new(["\n\n", "End", ""].map(str::to_owned));
        assert_eq!(stops.find("one\n\ntwo End", 0), Some(3));
        assert_eq!(stops.find("ä End", 2), Some(3));
        assert_eq!(stops.find("näher\nEn", 0), None);
        // A sequence that the last piece completes is found, though it began before.
        assert_eq!(stops.find("the End", 6), Some(4));
        assert_eq!(["one\n", "En", "one", ""].map(|text| stops.held_back(text)), [1, 2, 0, 0]);
        assert_eq!(stops.held_back("xE"), 1);
        assert!(StopSequences::new([String::new()]).is_empty());
    }
}
