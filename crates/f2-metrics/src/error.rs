//! Why a score cannot be computed.

use thiserror::Error;

use crate::Need;

/// Why a score cannot be computed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// There are no texts to score.
    #[error("there are no texts")]
    NoTexts,
    /// There are no references to compare with.
    #[error("there are no references")]
    NoReferences,
    /// The numbers of texts and references differ, but each text needs its own reference.
    #[error("there are {texts} texts and {references} references; each text needs its own")]
    Unmatched {
        /// How many texts there are.
        texts: usize,
        /// How many references there are.
        references: usize,
    },
    /// Every text is empty.
    #[error("the {0} hold no tokens")]
    NoTokens(&'static str),
    /// Self-BLEU needs at least two texts.
    #[error("Self-BLEU compares every text with the others and needs at least two texts, not {0}")]
    OneText(usize),
    /// All texts are too short for Distinct.
    #[error("Distinct is not defined from order {order} up: no text has {shortest} tokens or more")]
    AllTooShort {
        /// The length of the n-grams.
        order: usize,
        /// The length of the shortest text that would be included.
        shortest: usize,
    },
    /// MS-Jaccard has no n-grams to compare.
    #[error("MS-Jaccard is not defined from order {0} up: there are no n-grams to compare")]
    NoNgrams(usize),
    /// No text is long enough for a metric.
    #[error("{metric} is not defined at order {order}: no text has {order} tokens or more")]
    NoNgramsIn {
        /// The metric.
        metric: &'static str,
        /// The length of the n-grams.
        order: usize,
    },
    /// A line fit needs two points.
    #[error("the Zipf coefficient needs two different tokens")]
    OneToken,
    /// There are more texts than a metric supports.
    #[error("{metric} is computed for at most {most} texts, not {texts}")]
    TooManyTexts {
        /// The metric.
        metric: &'static str,
        /// How many there are.
        texts: usize,
        /// The largest supported number.
        most: usize,
    },
    /// MAUVE needs at least two texts on either side.
    #[error("MAUVE needs at least two texts on either side, not {0}")]
    FewPoints(usize),
    /// The features have different widths.
    #[error("vectors of dimension {} and {} cannot be compared", .0[0], .0[1])]
    Widths([usize; 2]),
    /// The numbers of prompts and texts differ.
    #[error("there are {prompts} prompts for {texts} texts")]
    Prompts {
        /// How many prompts there are.
        prompts: usize,
        /// How many texts there are.
        texts: usize,
    },
    /// A metric needs more than the texts' tokens.
    #[error("{metric} needs {need}")]
    Needs {
        /// The metric.
        metric: &'static str,
        /// The missing input.
        need: Need,
    },
    /// A token id is outside the training counts.
    #[error(
        "text {text} holds the token id {id}, but the counts cover the ids 0 to {last} only",
        last = .known - 1
    )]
    IdOutsideCounts {
        /// The number of the text, from 1.
        text: usize,
        /// The offending id.
        id: u32,
        /// How many ids the counts cover.
        known: usize,
    },
    /// Frequency bands need training counts.
    #[error("the counts are empty or all zero, so they define no frequency bands")]
    NoCounts,
    /// The counts must not increase with rank.
    #[error(
        "the counts rise after rank {0}, but a rank may not be more frequent than the one before"
    )]
    CountsNotDescending(usize),
    /// N-grams are numbered in 32 bits.
    #[error("{0} tokens are too many: n-grams are numbered in 32 bits")]
    TooManyTokens(usize),
}
