//! Errors of preparing and reading a corpus.

use std::io;
use std::path::{Path, PathBuf};

use f2_files::{LockError, ReadError, WriteError};

/// Errors of preparing and reading a corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input or a corpus file cannot be opened or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An output file cannot be written: no space, no permission.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process is writing the corpus.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A compressed file ends early or is damaged.
    #[error("{path}: the compressed data is cut short or damaged: {source}")]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The decompressor's message.
        source: io::Error,
    },
    /// Text that is not UTF-8.
    #[error("{path}: invalid UTF-8 at byte {offset} of the text")]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte, in the decompressed text.
        offset: u64,
    },
    /// A line of a JSON Lines file that cannot be used.
    #[error("{path}, line {line}: {reason}")]
    JsonLine {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Broken syntax, a missing field, or a field that is not a string.
        reason: String,
    },
    /// A line of a JSON Lines file that is not a pair.
    #[error("{path}, line {line}: {reason}")]
    PairLine {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Broken syntax, a missing or empty field, or a special token inside the text.
        reason: String,
    },
    /// Pairs in a format that they cannot be read from.
    #[error("{path} is Parquet, and pairs are read from JSON Lines")]
    PairsOfParquet {
        /// The file.
        path: PathBuf,
    },
    /// A separator that the tokenizer does not keep whole.
    #[error("{tokenizer} has no token {separator} to separate sources from targets")]
    NoSeparator {
        /// The tokenizer.
        tokenizer: String,
        /// The requested separator.
        separator: String,
    },
    /// A separator that cannot be a special token.
    #[error("the separator {separator:?} is empty or has white space in it")]
    BadSeparator {
        /// The requested separator.
        separator: String,
    },
    /// A split that should have pairs got none.
    #[error("no pair fell into the {split} split: the input has {pairs} in all")]
    TooFewPairs {
        /// Name of the split.
        split: &'static str,
        /// Pairs found in the input.
        pairs: u64,
    },
    /// A Parquet file that cannot be used.
    #[error("{path}: {reason}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A document, or a line that holds one, above the size limit.
    #[error("{path}: a document has more than {longest} bytes")]
    DocumentTooLong {
        /// The file.
        path: PathBuf,
        /// The largest document allowed, in bytes.
        longest: u64,
    },
    /// A file whose content differed when it was read again.
    #[error("{path} changed while it was read")]
    InputChanged {
        /// The file.
        path: String,
    },
    /// A folder without any file that looks like text.
    #[error("{path} holds no .txt, .tokens, .jsonl or .parquet file, plain or compressed")]
    NothingToRead {
        /// The folder.
        path: PathBuf,
    },
    /// No document at all in the training text.
    #[error("the training text is empty: no document was found in {inputs}")]
    Empty {
        /// The inputs, as they were given.
        inputs: String,
    },
    /// A split that should have text got none.
    #[error("no document fell into the {split} split: the input has {documents} in all")]
    EmptySplit {
        /// Name of the split.
        split: &'static str,
        /// Documents found in the input.
        documents: u64,
    },
    /// Fractions that do not describe a split.
    #[error(
        "the fractions {train}, {valid}, {test} must be at least 0, the first above 0, and add up to 1"
    )]
    Fractions {
        /// Share of the training split.
        train: f64,
        /// Share of the validation split.
        valid: f64,
        /// Share of the test split.
        test: f64,
    },
    /// Fewer tokens requested than there are bytes.
    #[error("a vocabulary of {asked} cannot hold the 256 bytes that every text is made of")]
    VocabularyTooSmall {
        /// The requested vocabulary size.
        asked: usize,
    },
    /// A tokenizer that cannot be loaded, trained or used.
    #[error("{origin}: not a usable tokenizer: {reason}")]
    Tokenizer {
        /// The file it comes from, or what was being done with it.
        origin: String,
        /// The tokenizer library's message.
        reason: String,
    },
    /// The output folder holds something else.
    #[error("{path} exists and is not a corpus, so it is not replaced")]
    NotACorpus {
        /// The folder.
        path: PathBuf,
    },
    /// The output folder holds more than a corpus.
    #[error(
        "{path} holds {name}, which does not belong to the corpus there, so it is not replaced"
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// A file that is not part of a corpus.
        name: String,
    },
    /// The output folder already holds a corpus.
    #[error("{path} already holds a corpus")]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// An input that cannot be read again.
    #[error(
        "{path} can be read only once, and a text that is prepared in parts is read several times"
    )]
    ReadOnce {
        /// The pipe, or `-`.
        path: PathBuf,
    },
    /// A file name that cannot be recorded.
    #[error(
        "the name of a file in {inputs} is not UTF-8, and parts record the names of their text"
    )]
    NameNotUtf8 {
        /// The inputs, as they were given.
        inputs: String,
    },
    /// An entry in a folder of parts that is not a part.
    #[error("{path} holds {name}, which does not belong to a text in parts")]
    NotAPart {
        /// The folder.
        path: PathBuf,
        /// The foreign entry.
        name: String,
    },
    /// A folder without parts.
    #[error("{path} holds no parts of a text")]
    NoParts {
        /// The folder.
        path: PathBuf,
    },
    /// Parts that have not been made, or were killed before they were complete.
    #[error("{}", missing_parts(path, missing, *of, step))]
    MissingParts {
        /// The folder of parts.
        path: PathBuf,
        /// Their numbers.
        missing: Vec<usize>,
        /// How many parts there are.
        of: usize,
        /// The missing step: `counted` or `encoded`.
        step: &'static str,
    },
    /// A part of another text, of other options or of another program.
    #[error("{path} does not belong to this text and these options: {difference}")]
    OtherJob {
        /// The part.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
    /// A part that is damaged or out of date.
    #[error("{path}: {reason}")]
    BadPart {
        /// The part.
        path: PathBuf,
        /// The condition that does not hold.
        reason: String,
    },
    /// A text that is not the one its parts were made from.
    #[error("the text is not the one that its parts were made from: {difference}")]
    TextChanged {
        /// The difference.
        difference: String,
    },
    /// Parts that use a given tokenizer, so there is no vocabulary to learn.
    #[error("the parts in {path} use a given tokenizer: there is no vocabulary to learn")]
    NothingToLearn {
        /// The folder of parts.
        path: PathBuf,
    },
    /// A corpus file that is damaged, foreign or of another version.
    #[error("{path}: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The condition that does not hold.
        reason: String,
    },
    /// Stopped by the observer.
    #[error("interrupted")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_path_buf(), reason: reason.into() }
    }
}

fn missing_parts(path: &Path, missing: &[usize], of: usize, step: &str) -> String {
    let (parts, have) = if missing.len() == 1 { ("part", "has") } else { ("parts", "have") };
    let numbers = ranges(missing);
    format!("{parts} {numbers} of {of} {have} not been {step} in {}", path.display())
}

/// Ascending numbers as ranges, in the notation of job schedulers: `1-20,33`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|before, after| before + 1 == *after);
    let shown = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(usize::to_string).collect(),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_ranges() {
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[1, 3, 4, 64]), "1,3-4,64");
        let all_but_one: Vec<usize> = (1..=64).filter(|&number| number != 33).collect();
        assert_eq!(ranges(&all_but_one), "1-32,34-64");
    }
}
