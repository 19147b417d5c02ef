//! The paper's two test protocols: how a split is cut into prefixes for the models to continue and
//! their human continuations.

use crate::Error;
use crate::batch::TokenSource;

/// The protocols by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolName {
    /// Wikitext-103's: windows over 256 contiguous streams of the text.
    Paper,
    /// Melo-Lyrics': the beginnings of documents.
    Lyrics,
}

impl ProtocolName {
    /// Both protocols.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Lyrics];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Lyrics => "lyrics",
        }
    }

    /// The k of top-k sampling in the paper's main table.
    pub fn top_k(self) -> usize {
        match self {
            Self::Paper => 3,
            Self::Lyrics => 20,
        }
    }

    /// The protocol with the paper's numbers.
    pub fn protocol(self) -> Protocol {
        let cut = match self {
            Self::Paper => Cut::Streams(256),
            Self::Lyrics => Cut::Documents,
        };
        Protocol { cut, prefix: 50, continuation: 100 }
    }
}

/// How a split is cut into prefixes and references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Where the windows of prefix and reference lie.
    pub cut: Cut,
    /// Tokens of a prefix.
    pub prefix: usize,
    /// Tokens of a reference, and of a model's continuation.
    pub continuation: usize,
}

/// Where the windows of a protocol lie in a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Adjacent, in this number of contiguous streams of equal length. Only whole windows count: a
    /// shorter reference would distort every metric that depends on length. A remainder that does
    /// not fill a stream or a window is dropped.
    Streams(usize),
    /// At the beginning of every document that is longer than a window.
    Documents,
}

/// Prefixes and their references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestSet {
    /// For the models to continue.
    pub prefixes: Vec<Vec<u32>>,
    /// The tokens that followed each prefix in the split.
    pub references: Vec<Vec<u32>>,
}

/// The most documents the authors evaluate: batches of 512 until there are 10,000.
const MOST_DOCUMENTS: usize = 10_240;

impl Protocol {
    /// Tokens of a prefix and its reference together.
    fn window(&self) -> usize {
        self.prefix.saturating_add(self.continuation)
    }

    /// The most texts the paper's protocol takes.
    pub fn most_texts(&self) -> usize {
        match self.cut {
            Cut::Streams(_) => usize::MAX,
            Cut::Documents => MOST_DOCUMENTS,
        }
    }

    /// Cuts a split.
    ///
    /// ```
    /// use f2_lm::decode::{Cut, Protocol};
    /// let protocol = Protocol { cut: Cut::Streams(2), prefix: 1, continuation: 2 };
    /// let test = protocol.cut(&(0..15).collect::<Vec<u32>>())?;
    /// assert_eq!(test.prefixes, [[0], [3], [7], [10]]);
    /// assert_eq!(test.references[3], [11, 12]);
    /// # Ok::<(), f2_lm::Error>(())
    /// ```
    pub fn cut(&self, split: &dyn TokenSource) -> Result<TestSet, Error> {
        self.check_sizes()?;
        let starts = match self.cut {
            Cut::Streams(streams) => self.in_streams(split.len(), streams as u64)?,
            Cut::Documents => self.in_documents(split)?,
        };
        let mut test = TestSet::default();
        let mut window = vec![0; self.window()];
        for start in starts {
            split.read(start..start + window.len() as u64, &mut window);
            let (prefix, reference) = window.split_at(self.prefix);
            test.prefixes.push(prefix.to_vec());
            test.references.push(reference.to_vec());
        }
        Ok(test)
    }

    fn check_sizes(&self) -> Result<(), Error> {
        let Self { cut, prefix, continuation } = *self;
        let size = |words: &str| Error::Strategy {
            option: "protocol",
            reason: format!("{words} is 0, which leaves nothing to write"),
        };
        match (cut, prefix, continuation) {
            (Cut::Streams(0), ..) => Err(size("the number of streams")),
            (_, 0, _) => Err(size("the prefix")),
            (_, _, 0) => Err(size("the continuation")),
            _ => Ok(()),
        }
    }

    /// Where windows begin in streams.
    fn in_streams(&self, tokens: u64, streams: u64) -> Result<Vec<u64>, Error> {
        let (stream, window) = (tokens / streams, self.window() as u64);
        if stream < window {
            let reason = format!(
                "{streams} streams of {tokens} tokens have {stream} each, fewer than the {window} \
                 of a window"
            );
            return Err(Error::Strategy { option: "protocol", reason });
        }
        let windows = (0..stream / window).map(|place| place * window);
        let starts = (0..streams)
            .flat_map(|number| windows.clone().map(move |start| number * stream + start));
        Ok(starts.collect())
    }

    /// Where the documents begin that are longer than a window.
    fn in_documents(&self, split: &dyn TokenSource) -> Result<Vec<u64>, Error> {
        let documents = split.documents();
        if let [only] = &documents[..] {
            return Err(Error::OneDocument { tokens: only.end - only.start });
        }
        let window = self.window() as u64;
        let long = documents.iter().filter(|document| document.end - document.start > window);
        let starts: Vec<u64> = long.map(|document| document.start).collect();
        if starts.is_empty() {
            let longest = documents.iter().map(|document| document.end - document.start).max();
            return Err(Error::ShortDocuments {
                documents: documents.len(),
                longest: longest.unwrap_or(0),
                window,
            });
        }
        Ok(starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::documents_for_tests::Documents;

    /// The paper's test split has 269,551 tokens, and its results imply 1,792 texts; the second
    /// count is that of a tokenizer that keeps unknown words.
    #[test]
    fn the_papers_counts_of_windows_come_out() {
        for (tokens, texts) in [(269_551, 1_792), (263_931, 1_536)] {
            let split: Vec<u32> = (0..tokens).collect();
            let test = ProtocolName::Paper.protocol().cut(&split).unwrap();
            assert_eq!(test.prefixes.len(), texts);
            assert!(test.prefixes.iter().all(|prefix| prefix.len() == 50));
            assert!(test.references.iter().all(|reference| reference.len() == 100));
            let follows =
                |(prefix, reference): (&Vec<u32>, &Vec<u32>)| prefix[49] + 1 == reference[0];
            assert!(test.prefixes.iter().zip(&test.references).all(follows));
            assert_eq!(test.prefixes[texts / 256][0], tokens / 256);
        }
    }

    #[test]
    fn documents_longer_than_a_window_give_their_beginning() {
        let test = ProtocolName::Lyrics.protocol().cut(&Documents(vec![151, 150, 400, 9])).unwrap();
        let firsts: Vec<u32> = test.prefixes.iter().map(|prefix| prefix[0]).collect();
        assert_eq!(firsts, [0, 301]);
        assert!(test.prefixes.iter().all(|prefix| prefix.len() == 50));
        assert_eq!(test.references[1], (351..451).collect::<Vec<u32>>());
    }

    #[test]
    fn splits_that_hold_no_window_are_refused() {
        let text = vec![1; 100];
        let streams = |streams, prefix, continuation| {
            Protocol { cut: Cut::Streams(streams), prefix, continuation }.cut(&text)
        };
        let documents = |songs| ProtocolName::Lyrics.protocol().cut(&Documents(songs));
        let refused = [
            streams(0, 2, 2),
            streams(3, 0, 4),
            streams(3, 4, 0),
            streams(20, 2, 4),
            documents(vec![150, 3, 20]),
            documents(vec![]),
            documents(vec![9_000]),
        ];
        let refused = refused.map(|refused| refused.unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        protocol: the number of streams is 0, which leaves nothing to write
        protocol: the prefix is 0, which leaves nothing to write
        protocol: the continuation is 0, which leaves nothing to write
        protocol: 20 streams of 100 tokens have 5 each, fewer than the 6 of a window
        none of the split's 3 documents has more than 150 tokens; the longest has 150
        the split has no documents
        the split is one document of 9000 tokens
        ");
    }
}
