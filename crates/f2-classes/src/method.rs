use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::equal::equal_tokens;
use crate::exact::{self, ExactCuts};
use crate::objective::Objective;
use crate::{RankCounts, author, greedy};

/// How the classes are cut, and how K is chosen where none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// MefMax as the paper prints it (Algorithm 1), in integer arithmetic.
    Greedy,
    /// MefMax as the authors' program has it: another rule for the cuts and a product for Eq. 5.
    Author,
    /// The cuts with the highest mean efficiency, for every K up to twice the paper's cap.
    Exact,
    /// As many tokens in every class, with the K of `Greedy` where none is given.
    EqualTokens,
    /// As much mass in every class, by the rule of `Greedy` and with its K where none is given.
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

    /// The numbers of classes tried where none is given.
    pub(crate) fn range(self, counts: &RankCounts) -> RangeInclusive<usize> {
        let cap = counts.class_cap();
        match self {
            Self::Greedy | Self::EqualTokens | Self::EqualFrequency => 1..=cap,
            Self::Author => 2.min(cap)..=cap,
            Self::Exact => 1..=exact::largest_k(counts.vocabulary(), cap),
        }
    }

    /// The ends of the classes for each K of a range; a K the method cannot reach is left out.
    pub(crate) fn cut(self, objective: &Objective, ks: RangeInclusive<usize>) -> Vec<Vec<usize>> {
        let (sums, vocabulary) = (&objective.sums, objective.vocabulary());
        let each = || ks.clone().into_par_iter();
        match self {
            Self::Greedy | Self::EqualFrequency => each().map(|k| greedy::ends(sums, k)).collect(),
            Self::Author => each().filter_map(|k| author::ends(sums, k)).collect(),
            Self::EqualTokens => each().map(|k| equal_tokens(vocabulary, k)).collect(),
            Self::Exact => {
                let cuts = ExactCuts::new(objective, ks.clone());
                each().map(|k| cuts.ends(k)).collect()
            }
        }
    }
}

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
