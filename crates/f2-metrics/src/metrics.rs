//! The metrics and their values: the single list behind scoring, intervals, comparisons, files and
//! tables. A new metric of the paper is an entry of [`Metric`] and a field of [`Metrics`]; all
//! others are entries of [`Further`](crate::Further).

use std::slice::from_ref;

use serde::{Deserialize, Serialize, Serializer};

use crate::measure::{Better, Measure, Need};
use crate::{BandShares, Convention, FurtherMetrics, Interval};

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

/// One value for each metric; `None` if it is not defined or was not requested.
///
/// Lists hold the values by order from 1. Values are fractions, nats and counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(serialize = "V: Value", deserialize = "V: Copy + Deserialize<'de>"))]
pub struct Metrics<V = f64> {
    /// Perplexity, which needs a model and is supplied by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppl: Option<V>,
    /// KL divergence of unigrams from the references, in nats.
    pub kld: Option<V>,
    /// MS-Jaccard with the references.
    pub ms_jaccard: Vec<Option<V>>,
    /// Self-BLEU.
    pub self_bleu: Vec<Option<V>>,
    /// Distinct.
    pub distinct: Vec<Option<V>>,
    /// The share of texts that end in a loop.
    pub rep: Option<V>,
    /// The number of distinct tokens.
    #[serde(serialize_with = "count")]
    pub uniq: Option<V>,
    /// The shares of the frequency bands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<BandShares<V>>,
    /// Further metrics, if requested.
    #[serde(skip_serializing_if = "FurtherMetrics::is_empty")]
    pub further: FurtherMetrics<V>,
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

    /// The name in running text.
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

    /// The name in files and APIs, that of its field in [`Metrics`].
    pub fn key(self) -> &'static str {
        match self {
            Self::Ppl => "ppl",
            Self::Kld => "kld",
            Self::MsJaccard => "ms_jaccard",
            Self::SelfBleu => "self_bleu",
            Self::Distinct => "distinct",
            Self::Rep => "rep",
            Self::Uniq => "uniq",
        }
    }

    /// The abbreviation in the headings of tables; an order may follow.
    pub fn abbreviation(self) -> &'static str {
        match self {
            Self::MsJaccard => "MSJ",
            Self::SelfBleu => "SB",
            Self::Distinct => "D",
            _ => self.name(),
        }
    }

    /// Whether it has a value for each n-gram order.
    pub fn has_orders(self) -> bool {
        matches!(self, Self::MsJaccard | Self::SelfBleu | Self::Distinct)
    }

    /// The direction in which values are better.
    pub fn better(self) -> Better {
        match self {
            Self::Ppl | Self::Kld => Better::Lower,
            Self::MsJaccard => Better::Higher,
            Self::SelfBleu | Self::Distinct | Self::Rep | Self::Uniq => Better::CloserToHuman,
        }
    }

    /// The input it needs besides the texts' tokens.
    pub fn needs(self) -> Option<Need> {
        match self {
            Self::Ppl => Some(Need::Likelihood),
            Self::Kld | Self::MsJaccard => Some(Need::References),
            Self::SelfBleu | Self::Distinct | Self::Rep | Self::Uniq => None,
        }
    }

    /// The largest value it can have.
    pub fn most(self) -> f64 {
        match self {
            Self::Ppl | Self::Kld | Self::Uniq => f64::INFINITY,
            Self::MsJaccard | Self::SelfBleu | Self::Distinct | Self::Rep => 1.0,
        }
    }

    /// How the paper prints it: the factor to multiply by and the number of decimals.
    pub fn printed(self) -> (f64, usize) {
        match self {
            Self::Ppl => (1.0, 1),
            Self::Kld => (1.0, 2),
            Self::MsJaccard | Self::SelfBleu | Self::Distinct => (100.0, 1),
            Self::Rep => (100.0, 2),
            Self::Uniq => (1.0, 0),
        }
    }

    /// The definition in one line, for a table's footnote.
    ///
    /// ```
    /// use f2_metrics::{Convention, Metric};
    /// assert!(Metric::Distinct.definition(Convention::Paper).contains("text length"));
    /// assert!(Metric::Distinct.definition(Convention::Textbook).contains("number of n-grams"));
    /// ```
    pub fn definition(self, convention: Convention) -> &'static str {
        use Convention::{Paper, Textbook};
        match (self, convention) {
            (Self::Ppl, _) => "exp(summed negative log-likelihood in nats / scored tokens)",
            (Self::Kld, Paper) => {
                "KL(human ‖ model) of unigrams in nats; a token one side lacks has probability 1e-10"
            }
            (Self::Kld, Textbook) => {
                "KL(human ‖ model) of unigrams in nats; a token the model lacks has probability 1e-10"
            }
            (Self::MsJaccard, Paper) => {
                "geometric mean over orders 1…n of Σmin/Σmax of relative n-gram frequencies, \
                 each text padded by n−1 symbols per side and read 2(n−1) positions further"
            }
            (Self::MsJaccard, Textbook) => {
                "geometric mean over orders 1…n of Σmin/Σmax of n-gram counts per text, no padding"
            }
            (Self::SelfBleu, Paper) => {
                "mean BLEU of each text against all others, closest length, \
                 zero matches counted as 1e-100"
            }
            (Self::SelfBleu, Textbook) => {
                "mean BLEU of each text against all others, closest length, zero matches counted \
                 as 0.1, 0 without a common unigram (NLTK, method1)"
            }
            (Self::Distinct, Paper) => {
                "mean over texts of distinct n-grams / text length; texts of 5 tokens or fewer left out"
            }
            (Self::Distinct, Textbook) => {
                "mean over texts of distinct n-grams / number of n-grams; texts shorter than n left out"
            }
            (Self::Rep, _) => {
                "share of texts that end in a loop: the best-repeated phrase has 3 tokens or more \
                 twice, or fewer than 3 tokens more than 50 times"
            }
            (Self::Uniq, _) => "number of distinct tokens over all texts",
        }
    }
}

impl<V> Default for Metrics<V> {
    fn default() -> Self {
        Self {
            ppl: None,
            kld: None,
            ms_jaccard: Vec::new(),
            self_bleu: Vec::new(),
            distinct: Vec::new(),
            rep: None,
            uniq: None,
            bands: None,
            further: FurtherMetrics::default(),
        }
    }
}

impl<V: Copy> Metrics<V> {
    /// A metric's values by order; a metric without orders has one.
    ///
    /// ```
    /// use f2_metrics::{Metric, Metrics};
    /// let metrics = Metrics { kld: Some(0.62), ..Metrics::default() };
    /// assert_eq!(metrics.orders(Metric::Kld), [Some(0.62)]);
    /// assert!(metrics.orders(Metric::Distinct).is_empty());
    /// ```
    pub fn orders(&self, metric: Metric) -> &[Option<V>] {
        match metric {
            Metric::Ppl => from_ref(&self.ppl),
            Metric::Kld => from_ref(&self.kld),
            Metric::MsJaccard => &self.ms_jaccard,
            Metric::SelfBleu => &self.self_bleu,
            Metric::Distinct => &self.distinct,
            Metric::Rep => from_ref(&self.rep),
            Metric::Uniq => from_ref(&self.uniq),
        }
    }

    /// Clears the values of the paper's metrics that are not among these.
    pub fn keep(&mut self, metrics: &[Metric]) {
        for metric in Metric::ALL.into_iter().filter(|metric| !metrics.contains(metric)) {
            match metric {
                Metric::Ppl => self.ppl = None,
                Metric::Kld => self.kld = None,
                Metric::MsJaccard => self.ms_jaccard.clear(),
                Metric::SelfBleu => self.self_bleu.clear(),
                Metric::Distinct => self.distinct.clear(),
                Metric::Rep => self.rep = None,
                Metric::Uniq => self.uniq = None,
            }
        }
    }

    /// One of the values.
    pub fn get(&self, measure: Measure) -> Option<V> {
        match measure {
            Measure::Metric(metric, order) => self.orders(metric).get(order - 1).copied().flatten(),
            Measure::Further(metric, order) => self.further.get(metric, order),
            Measure::Band(band) => self.bands.as_ref().map(|bands| bands.shares()[band]),
        }
    }

    /// Maps every value that is present.
    pub fn map<W: Copy>(&self, mut put: impl FnMut(Measure, V) -> Option<W>) -> Metrics<W> {
        let mut orders = |metric: Metric| -> Vec<Option<W>> {
            let values = (1..).zip(self.orders(metric));
            values.map(|(order, &value)| put(Measure::Metric(metric, order), value?)).collect()
        };
        let mut one = |metric: Metric| orders(metric).pop().flatten();
        Metrics {
            ppl: one(Metric::Ppl),
            kld: one(Metric::Kld),
            rep: one(Metric::Rep),
            uniq: one(Metric::Uniq),
            ms_jaccard: orders(Metric::MsJaccard),
            self_bleu: orders(Metric::SelfBleu),
            distinct: orders(Metric::Distinct),
            bands: self.bands.as_ref().and_then(|bands| bands.map(&mut put)),
            further: self.further.map(&mut put),
        }
    }
}

/// The value of a metric: a number, or the interval around one.
pub trait Value: Copy + Serialize {
    /// Serializes a value that is a count.
    fn write_count<S: Serializer>(self, out: S) -> Result<S::Ok, S::Error> {
        self.serialize(out)
    }
}

impl Value for f64 {
    /// As an integer if it is one.
    fn write_count<S: Serializer>(self, out: S) -> Result<S::Ok, S::Error> {
        if self.fract() == 0.0 && self >= 0.0 {
            out.serialize_u64(self as u64)
        } else {
            out.serialize_f64(self)
        }
    }
}

impl Value for Interval {}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn count<V: Value, S: Serializer>(value: &Option<V>, out: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.write_count(out),
        None => out.serialize_none(),
    }
}
