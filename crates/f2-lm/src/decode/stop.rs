//! Sequences of characters that end a text.

/// Sequences of characters that end a text and are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopSequences(Vec<String>);

impl StopSequences {
    /// Empty ones are left out: every text would begin with them.
    pub fn new(sequences: impl IntoIterator<Item = String>) -> Self {
        Self(sequences.into_iter().filter(|sequence| !sequence.is_empty()).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the first of them begins in a text, in bytes. The first `known` bytes are known to hold
    /// none in full.
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

    /// How many bytes at a text's end may turn out to be the beginning of one.
    pub fn held_back(&self, text: &str) -> usize {
        let held = |sequence: &String| {
            let beginnings = sequence.char_indices().map(|(end, _)| end).rev();
            beginnings.into_iter().find(|end| text.ends_with(&sequence[..*end])).unwrap_or(0)
        };
        self.0.iter().map(held).max().unwrap_or(0)
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
