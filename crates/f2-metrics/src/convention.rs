//! The two definitions of each metric.

use std::fmt;
use std::str::FromStr;

/// The definitions of the metrics.
///
/// The two differ in MS-Jaccard, Self-BLEU and Distinct, and in the tenth digit of KL divergence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// The definitions of the authors' evaluation, which agree with the paper's Human row.
    #[default]
    Paper,
    /// Each metric as its own paper defines it; Self-BLEU equals NLTK's.
    Textbook,
}

/// The authors' probability of an n-gram that does not occur on one side.
pub(crate) const MISSING: f64 = 1e-10;

impl fmt::Display for Convention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Paper => "paper",
            Self::Textbook => "textbook",
        })
    }
}

impl FromStr for Convention {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "paper" => Ok(Self::Paper),
            "textbook" => Ok(Self::Textbook),
            _ => Err(format!("unknown convention {name}: it is paper or textbook")),
        }
    }
}
