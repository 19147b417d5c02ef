//! The list of the further metrics: names, directions, definitions and required inputs.

use super::{
    MATTR_WINDOW, NOVELTY_ORDERS, REP_WINDOWS, SELF_REPETITION_ORDER, SEQ_REP_ORDER, VENDI_ORDERS,
    ZIPF_RANKS,
};
use crate::measure::{Better, Need};

/// The metrics beyond the paper's seven, in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Further {
    /// The compression ratio of gzip (Shaib et al., 2024).
    CompressionRatio,
    /// 4-grams that also occur in other texts (Salkar et al., 2022).
    SelfRepetition,
    /// The share of n-grams that occurred before in their text (Su et al., 2022).
    RepN,
    /// The product of 1 − rep-n (Su et al., 2022).
    Diversity,
    /// The share of repeated n-grams of each text, averaged over texts (Welleck et al., 2020).
    SeqRep,
    /// The share of tokens that are among the l tokens before them (Welleck et al., 2020).
    RepL,
    /// The exponent of Zipf's law (Holtzman et al., 2020).
    Zipf,
    /// The entropy of n-grams.
    Entropy,
    /// The moving-average type-token ratio (Covington and `McFall`, 2010).
    Mattr,
    /// The share of n-grams that do not occur in the training text (`McCoy` et al., 2023).
    Novelty,
    /// The longest token sequence that also occurs in the training text.
    LongestMatch,
    /// The effective number of distinct texts (Friedman and Dieng, 2023).
    Vendi,
    /// How close the distribution of texts is to that of human texts (Pillutla et al., 2021).
    Mauve,
    /// The similarity of continuations to their prompts (Su et al., 2022).
    Coherence,
}

impl Further {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::CompressionRatio,
        Self::SelfRepetition,
        Self::RepN,
        Self::Diversity,
        Self::SeqRep,
        Self::RepL,
        Self::Zipf,
        Self::Entropy,
        Self::Mattr,
        Self::Novelty,
        Self::LongestMatch,
        Self::Vendi,
        Self::Mauve,
        Self::Coherence,
    ];

    /// The name in running text.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompressionRatio => "Compression ratio",
            Self::SelfRepetition => "Self-repetition",
            Self::RepN => "rep-n",
            Self::Diversity => "Diversity",
            Self::SeqRep => "seq-rep-4",
            Self::RepL => "rep/l",
            Self::Zipf => "Zipf coefficient",
            Self::Entropy => "n-gram entropy",
            Self::Mattr => "MATTR",
            Self::Novelty => "Novelty",
            Self::LongestMatch => "Longest match",
            Self::Vendi => "Vendi score",
            Self::Mauve => "MAUVE",
            Self::Coherence => "Coherence",
        }
    }

    /// The name in files and APIs.
    pub fn key(self) -> &'static str {
        match self {
            Self::CompressionRatio => "compression_ratio",
            Self::SelfRepetition => "self_repetition",
            Self::RepN => "rep_n",
            Self::Diversity => "diversity",
            Self::SeqRep => "seq_rep_4",
            Self::RepL => "rep_l",
            Self::Zipf => "zipf",
            Self::Entropy => "entropy",
            Self::Mattr => "mattr",
            Self::Novelty => "novelty",
            Self::LongestMatch => "longest_match",
            Self::Vendi => "vendi",
            Self::Mauve => "mauve",
            Self::Coherence => "coherence",
        }
    }

    /// The metric with this key.
    ///
    /// ```
    /// use f2_metrics::Further;
    /// assert_eq!(Further::of_key("mattr"), Some(Further::Mattr));
    /// ```
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }

    /// The heading of its column in tables. `order` is one of [`Further::orders`].
    pub fn heading(self, order: usize) -> String {
        match self {
            Self::CompressionRatio => "CR".to_owned(),
            Self::SelfRepetition => "self-rep".to_owned(),
            Self::RepN => format!("rep-{order}"),
            Self::Diversity => "Div".to_owned(),
            Self::RepL => format!("rep/{order}"),
            Self::Zipf => "Zipf".to_owned(),
            Self::Entropy => format!("H{order}"),
            Self::Novelty => format!("new-{order}"),
            Self::LongestMatch => "match".to_owned(),
            Self::Vendi => "Vendi".to_owned(),
            Self::Coherence => "coherence".to_owned(),
            Self::SeqRep | Self::Mattr | Self::Mauve => self.name().to_owned(),
        }
    }

    /// The lengths of n-grams or windows it has values for; `[1]` if it has a single value.
    pub fn orders(self) -> &'static [usize] {
        match self {
            Self::RepN => &[2, 3, 4],
            Self::RepL => &REP_WINDOWS,
            Self::Entropy => &[1, 2, 3],
            Self::Novelty => &NOVELTY_ORDERS,
            _ => &[1],
        }
    }

    /// Whether it has a value for each of several lengths.
    pub fn has_orders(self) -> bool {
        self.orders() != [1]
    }

    /// The direction in which values are better.
    pub fn better(self) -> Better {
        match self {
            Self::Mauve => Better::Higher,
            _ => Better::CloserToHuman,
        }
    }

    /// Whether it is a fraction from 0 to 1, which tables print times 100.
    fn is_share(self) -> bool {
        matches!(
            self,
            Self::RepN
                | Self::Diversity
                | Self::SeqRep
                | Self::RepL
                | Self::Mattr
                | Self::Novelty
                | Self::Mauve
                | Self::Coherence
        )
    }

    /// The largest value it can have.
    pub fn most(self) -> f64 {
        if self.is_share() { 1.0 } else { f64::INFINITY }
    }

    /// How tables print it: the factor to multiply by and the number of decimals.
    pub fn printed(self) -> (f64, usize) {
        match self {
            share if share.is_share() => (100.0, 1),
            Self::LongestMatch | Self::Vendi => (1.0, 1),
            _ => (1.0, 2),
        }
    }

    /// The input it needs besides the texts' tokens.
    pub fn needs(self) -> Option<Need> {
        match self {
            Self::CompressionRatio => Some(Need::Strings),
            Self::Novelty | Self::LongestMatch => Some(Need::Training),
            Self::Mauve => Some(Need::HumanStates),
            Self::Coherence => Some(Need::PromptStates),
            _ => None,
        }
    }

    /// The definition in one line, for a table's footnote.
    pub fn definition(self) -> String {
        match self {
            Self::CompressionRatio => {
                "bytes of all texts joined by spaces / bytes of their gzip, level 9".to_owned()
            }
            Self::SelfRepetition => format!(
                "mean over texts of ln(1 + for each of its different {SELF_REPETITION_ORDER}-grams, \
                 the number of other texts that have it)"
            ),
            Self::RepN => {
                "1 − different n-grams / n-grams, both added up over the texts".to_owned()
            }
            Self::Diversity => "product of 1 − rep-n over n = 2, 3, 4".to_owned(),
            Self::SeqRep => {
                format!(
                    "mean over texts of 1 − different {SEQ_REP_ORDER}-grams / {SEQ_REP_ORDER}-grams"
                )
            }
            Self::RepL => {
                "share of tokens that are among the l tokens before them in their text".to_owned()
            }
            Self::Zipf => format!(
                "negative slope of ln(count) over ln(rank) by least squares, the {ZIPF_RANKS} most \
                 frequent tokens at most"
            ),
            Self::Entropy => {
                "entropy of the n-grams of all texts in nats, by relative frequency".to_owned()
            }
            Self::Mattr => format!(
                "mean over texts of the mean share of different tokens in windows of \
                 {MATTR_WINDOW}; a shorter text is one window"
            ),
            Self::Novelty => "share of n-grams that the training text does not have".to_owned(),
            Self::LongestMatch => {
                "mean over texts of the longest stretch of tokens that the training text has"
                    .to_owned()
            }
            Self::Vendi => format!(
                "exp(entropy of the eigenvalues of the matrix of similarities / texts); similarity: mean \
                 cosine of the counts of 1- to {VENDI_ORDERS}-grams"
            ),
            Self::Mauve => {
                "area under the divergence curve of the clusters that the model's last hidden states of \
                 these texts and of human ones fall into"
                    .to_owned()
            }
            Self::Coherence => {
                "mean cosine of the mean hidden states of each prompt and of its continuation".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_headings_are_unique() {
        let mut names: Vec<String> =
            Further::ALL.iter().map(|each| each.key().to_owned()).collect();
        for metric in Further::ALL {
            names.extend(metric.orders().iter().map(|order| metric.heading(*order)));
            assert_eq!(Further::of_key(metric.key()), Some(metric));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        // One metric's heading equals its key.
        assert_eq!(names.len(), all - 1);
    }
}
