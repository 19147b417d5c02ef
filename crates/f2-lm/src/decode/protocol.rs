use crate::Error;

/// The paper's test: a text cut into windows, the beginning of each a prefix to go on from, the
/// rest what a human wrote there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Contiguous parts of equal length the text is cut into first; what is left over is dropped.
    pub streams: usize,
    /// Tokens in a window.
    pub window: usize,
    /// How many of them are the prefix.
    pub prefix: usize,
}

/// What a model goes on from, and what a human wrote instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestWindows {
    /// The prefixes.
    pub prefixes: Vec<Vec<u32>>,
    /// What followed each.
    pub references: Vec<Vec<u32>>,
}

impl Default for Protocol {
    /// 256 streams of 150-token windows, 50 tokens of prefix.
    fn default() -> Self {
        Self { streams: 256, window: 150, prefix: 50 }
    }
}

impl Protocol {
    /// Tokens a model is to write after each prefix.
    pub fn new_tokens(&self) -> usize {
        self.window - self.prefix
    }

    /// Cuts a text. A stream's last window may be shorter, if it is longer than the prefix.
    ///
    /// ```
    /// use f2_lm::decode::Protocol;
    /// let protocol = Protocol { streams: 2, window: 4, prefix: 1 };
    /// let windows = protocol.cut(&(0..15).collect::<Vec<u32>>())?;
    /// assert_eq!(windows.prefixes, [[0], [4], [7], [11]]);
    /// assert_eq!(windows.references[1], [5, 6]);
    /// # Ok::<(), f2_lm::Error>(())
    /// ```
    pub fn cut(&self, text: &[u32]) -> Result<TestWindows, Error> {
        self.check(text.len())?;
        let mut windows = TestWindows::default();
        for stream in text.chunks_exact(text.len() / self.streams).take(self.streams) {
            for window in stream.chunks(self.window).filter(|window| window.len() > self.prefix) {
                let (prefix, reference) = window.split_at(self.prefix);
                windows.prefixes.push(prefix.to_vec());
                windows.references.push(reference.to_vec());
            }
        }
        Ok(windows)
    }

    fn check(&self, tokens: usize) -> Result<(), Error> {
        let Self { streams, window, prefix } = *self;
        let reason = if streams == 0 || prefix == 0 || prefix >= window {
            format!(
                "{streams} streams of {window} tokens with a prefix of {prefix} have no windows"
            )
        } else if tokens / streams <= prefix {
            format!(
                "{streams} streams of {tokens} tokens have {} each, not more than the prefix of \
                 {prefix}",
                tokens / streams
            )
        } else {
            return Ok(());
        };
        Err(Error::Strategy { option: "protocol", reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's test split has 269,551 tokens; its results speak for 1,792 texts.
    #[test]
    fn the_papers_test_split_has_1792_windows() {
        let windows = Protocol::default().cut(&vec![7; 269_551]).unwrap();
        assert_eq!(windows.prefixes.len(), 1_792);
        assert!(windows.prefixes.iter().all(|prefix| prefix.len() == 50));
        assert!(windows.references.iter().all(|reference| reference.len() == 100));
    }

    #[test]
    fn cuts_that_leave_nothing_are_refused() {
        let text = [1; 100];
        let refused =
            [(0, 4, 2), (3, 4, 0), (3, 4, 4), (20, 9, 5)].map(|(streams, window, prefix)| {
                Protocol { streams, window, prefix }.cut(&text).unwrap_err().to_string()
            });
        insta::assert_snapshot!(refused.join("\n"), @r"
        protocol: 0 streams of 4 tokens with a prefix of 2 have no windows
        protocol: 3 streams of 4 tokens with a prefix of 0 have no windows
        protocol: 3 streams of 4 tokens with a prefix of 4 have no windows
        protocol: 20 streams of 100 tokens have 5 each, not more than the prefix of 5
        ");
    }
}
