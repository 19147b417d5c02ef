//! The reasons for a score that cannot be given.

use thiserror::Error;

use crate::Need;

/// Why a score cannot be given.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// There is nothing to score.
    #[error("there are no texts")]
    NoTexts,
    /// There is nothing to compare with.
    #[error("there are no references")]
    NoReferences,
    /// Every text is compared with a reference of its own.
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
    /// Self-BLEU compares every text with the others.
    #[error("Self-BLEU compares every text with the others and needs at least two texts, not {0}")]
    OneText(usize),
    /// Distinct leaves short texts out, and nothing is left.
    #[error("Distinct is not defined from order {order} up: no text has {shortest} tokens or more")]
    AllTooShort {
        /// The length of the n-grams.
        order: usize,
        /// The shortest text that would count.
        shortest: usize,
    },
    /// MS-Jaccard has nothing to compare.
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
    /// A line needs two points.
    #[error("the Zipf coefficient needs two different tokens")]
    OneToken,
    /// A metric takes more time and memory than the texts are worth.
    #[error("{metric} of {texts} texts is not computed: {most} are the most")]
    TooManyTexts {
        /// The metric.
        metric: &'static str,
        /// How many there are.
        texts: usize,
        /// The most it is computed for.
        most: usize,
    },
    /// MAUVE clusters points.
    #[error("MAUVE needs at least two texts on either side, not {0}")]
    FewPoints(usize),
    /// Points that cannot be compared.
    #[error("points of {} numbers cannot be compared with points of {}", .0[0], .0[1])]
    Widths([usize; 2]),
    /// Every continuation needs its prompt.
    #[error("there are {prompts} prompts for {texts} texts")]
    Prompts {
        /// Prompts.
        prompts: usize,
        /// Texts.
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
    /// A token that the training counts do not know.
    #[error(
        "text {text} holds the token id {id}, but the counts cover the ids 0 to {last} only",
        last = .known - 1
    )]
    IdOutsideCounts {
        /// Which text, counted from 1.
        text: usize,
        /// The offending id.
        id: u32,
        /// How many ids the counts cover.
        known: usize,
    },
    /// Frequency bands need a training corpus.
    #[error("the counts are empty or all zero, so they cut no frequency bands")]
    NoCounts,
    /// Frequency bands are intervals of ranks.
    #[error(
        "the counts rise after rank {0}, but a rank may not be more frequent than the one before"
    )]
    CountsNotDescending(usize),
    /// N-grams are numbered in 32 bits.
    #[error("{0} tokens are too many: n-grams are numbered in 32 bits")]
    TooManyTokens(usize),
}
