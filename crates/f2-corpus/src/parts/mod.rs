//! Preparing a text in parts, each by its own process, on any machines that share the folders.
//!
//! ```text
//! each part: count words ─► all: learn the vocabulary ─► each part: encode ─► all: join
//! ```
//!
//! The result of a step is a folder in the folder of parts, published as a whole, with a sealed
//! record of the job it belongs to. A step refuses records of another job. The final corpus is,
//! byte for byte, the one that [`prepare`](crate::prepare) makes in a single process.

mod content;
mod difference;
mod folder;
mod job;
mod join;
mod learn;
mod merge;
mod record;
mod run;
mod share;

pub use learn::{LearnedVocabulary, learn_vocabulary};
pub use merge::{Merged, merge};
pub use record::Record;
pub use run::{PartDone, prepare_part};

/// One of the parts in which a text is prepared.
///
/// ```
/// let part: f2_corpus::Part = "3/64".parse().unwrap();
/// assert_eq!(part.to_string(), "part 3 of 64");
/// assert!("0/4".parse::<f2_corpus::Part>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    number: usize,
    /// How many there are.
    of: usize,
}

/// The numbers in the names of parts have five digits.
const MOST_PARTS: usize = 99_999;

impl Part {
    /// Its number, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// How many there are.
    pub fn of(self) -> usize {
        self.of
    }

    /// All `of` parts.
    fn all(of: usize) -> impl Iterator<Item = Self> {
        (1..=of).map(move |number| Self { number, of })
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "part {} of {}", self.number, self.of)
    }
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            Some((number.parse::<usize>().ok()?, of.parse::<usize>().ok()?))
        });
        match numbers {
            None => Err("expected a part and how many there are, as in 3/64".to_owned()),
            Some((_, of)) if of > MOST_PARTS => {
                Err(format!("there are {MOST_PARTS} parts at most"))
            }
            Some((number, of)) if number < 1 || number > of => {
                Err(format!("parts are counted from 1 to {of}"))
            }
            Some((number, of)) => Ok(Self { number, of }),
        }
    }
}
