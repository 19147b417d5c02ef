//! The methods of choosing classes.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::equal::equal_tokens;
use crate::exact::{self, ExactCuts};
use crate::objective::Objective;
use crate::{RankCounts, author, greedy};

/// How the classes are cut, and how K is chosen if none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// MefMax as the paper prints it (Algorithm 1), in integer arithmetic.
    Greedy,
    /// MefMax as in the authors' program: another rule for the cuts, a product instead of Eq. 5.
    Author,
    /// The cuts with the highest mean efficiency, for every K up to twice the paper's cap.
    Exact,
    /// The same number of tokens in every class, with the K of `Greedy` if none is given.
    EqualTokens,
    /// The same mass in every class, by the rule of `Greedy` and with its K if none is given.
    EqualFrequency,
}

impl Method {
    /// All methods, the default first.
    pub const ALL: [Self; 5] =
        [Self::Greedy, Self::Author, Self::Exact, Self::EqualTokens, Self::EqualFrequency];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Author => "author",
            Self::Exact => "exact",
            Self::EqualTokens => "equal-tokens",
            Self::EqualFrequency => "equal-frequency",
        }
    }

    /// Whether it is a variant of MefMax, which chooses the number of classes.
    pub fn is_mefmax(self) -> bool {
        matches!(self, Self::Greedy | Self::Author | Self::Exact)
    }

    /// The numbers of classes tried if none is given: up to the paper's cap or, for counts more
    /// even than those of any text, up to [`MOST_CLASSES`].
    pub(crate) fn range(self, counts: &RankCounts) -> RangeInclusive<usize> {
        let cap = counts.class_cap();
        let most = cap.min(MOST_CLASSES);
        match self {
            Self::Greedy | Self::EqualTokens | Self::EqualFrequency => 1..=most,
            Self::Author => 2.min(most)..=most,
            Self::Exact => 1..=exact::largest_k(counts.vocabulary(), cap),
        }
    }

    /// A function from each K of a range to the ends of its classes; `None` for a K that the method
    /// cannot reach. Storing the ends for all K would take memory quadratic in the vocabulary.
    pub(crate) fn cutter(self, objective: &Objective, ks: RangeInclusive<usize>) -> Cutter<'_> {
        let (sums, vocabulary) = (&objective.sums, objective.vocabulary());
        match self {
            Self::Greedy | Self::EqualFrequency => Box::new(|k| Some(greedy::ends(sums, k))),
            Self::Author => Box::new(|k| author::ends(sums, k)),
            Self::EqualTokens => Box::new(move |k| Some(equal_tokens(vocabulary, k))),
            Self::Exact => {
                let cuts = ExactCuts::new(objective, ks);
                Box::new(move |k| Some(cuts.ends(k)))
            }
        }
    }
}

/// Cuts the vocabulary into a given number of classes.
pub(crate) type Cutter<'a> = Box<dyn Fn(usize) -> Option<Vec<usize>> + Sync + 'a>;

/// The most classes tried if no K is given, since the time is quadratic in their number. The
/// paper's cap exceeds it only if no token has a share of 1 in 4,096: classes then gain nothing.
pub const MOST_CLASSES: usize = 4_096;

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|method| method.name() == name);
        named.ok_or_else(|| format!("{name} is not a method of cutting classes"))
    }
}
