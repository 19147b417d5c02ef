use std::fmt;
use std::str::FromStr;

/// Which definition of the metrics is used.
///
/// The two differ in MS-Jaccard, Self-BLEU and Distinct, and in the tenth digit of KL divergence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// What the authors' evaluation computes and the paper's Human row fits.
    #[default]
    Paper,
    /// Each metric as its own paper defines it; Self-BLEU equals NLTK's.
    Textbook,
}

/// The probability the authors give an n-gram that one side lacks.
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

/// The seven metrics, in the order of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Perplexity.
    Ppl,
    /// KL divergence of unigrams.
    Kld,
    /// MS-Jaccard.
    MsJaccard,
    /// Self-BLEU.
    SelfBleu,
    /// Distinct.
    Distinct,
    /// Repetition.
    Rep,
    /// Uniq.
    Uniq,
}

impl Metric {
    /// All seven.
    pub const ALL: [Self; 7] = [
        Self::Ppl,
        Self::Kld,
        Self::MsJaccard,
        Self::SelfBleu,
        Self::Distinct,
        Self::Rep,
        Self::Uniq,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ppl => "PPL",
            Self::Kld => "KLD",
            Self::MsJaccard => "MS-Jaccard",
            Self::SelfBleu => "Self-BLEU",
            Self::Distinct => "Distinct",
            Self::Rep => "Rep",
            Self::Uniq => "Uniq",
        }
    }

    /// The definition in one line, as a table's footnote gives it.
    ///
    /// ```
    /// use f2_metrics::{Convention, Metric};
    /// assert!(Metric::Distinct.definition(Convention::Paper).contains("text length"));
    /// assert!(Metric::Distinct.definition(Convention::Textbook).contains("number of n-grams"));
    /// ```
    pub fn definition(self, convention: Convention) -> &'static str {
        match convention {
            Convention::Paper => self.paper_definition(),
            Convention::Textbook => self.textbook_definition(),
        }
    }

    fn paper_definition(self) -> &'static str {
        match self {
            Self::Kld => {
                "KL(human ‖ model) of unigrams in nats; a token one side lacks has probability 1e-10"
            }
            Self::MsJaccard => {
                "geometric mean over orders 1…n of Σmin/Σmax of relative n-gram frequencies, \
                 each text padded by n−1 symbols per side and read 2(n−1) positions further"
            }
            Self::SelfBleu => {
                "mean BLEU of each text against all others, closest length, \
                 zero matches counted as 1e-100"
            }
            Self::Distinct => {
                "mean over texts of distinct n-grams / text length; texts of 5 tokens or fewer left out"
            }
            _ => self.textbook_definition(),
        }
    }

    fn textbook_definition(self) -> &'static str {
        match self {
            Self::Ppl => "exp(summed negative log-likelihood in nats / scored tokens)",
            Self::Kld => {
                "KL(human ‖ model) of unigrams in nats; a token the model lacks has probability 1e-10"
            }
            Self::MsJaccard => {
                "geometric mean over orders 1…n of Σmin/Σmax of n-gram counts per text, no padding"
            }
            Self::SelfBleu => {
                "mean BLEU of each text against all others, closest length, zero matches counted \
                 as 0.1, 0 without a common unigram (NLTK, method1)"
            }
            Self::Distinct => {
                "mean over texts of distinct n-grams / number of n-grams; texts shorter than n left out"
            }
            Self::Rep => {
                "share of texts that end in a loop: the best-repeated phrase has 3 tokens or more \
                 twice, or fewer than 3 tokens more than 50 times"
            }
            Self::Uniq => "number of distinct tokens over all texts",
        }
    }
}
