//! A single value of an evaluation, the direction in which it is better, and the inputs that
//! metrics need.

use std::fmt;

use crate::{Further, Metric, Metrics};

/// A single value of an evaluation: a column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// A metric at an order of n-grams; 1 for a metric without orders.
    Metric(Metric, usize),
    /// The share of a frequency band, as an index into [`BAND_NAMES`](crate::BAND_NAMES).
    Band(usize),
    /// A further metric at one of its orders.
    Further(Further, usize),
}

/// The direction in which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A smaller value.
    Lower,
    /// A larger value.
    Higher,
    /// A smaller distance to the value of human text.
    CloserToHuman,
}

/// An input that a metric needs besides the texts' tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// A model, for its likelihood of a text.
    Likelihood,
    /// Human texts to compare with.
    References,
    /// The texts as strings, not as token ids alone.
    Strings,
    /// The text the model was trained on.
    Training,
    /// A model's hidden states of human texts and of these.
    HumanStates,
    /// A model's hidden states of the prompts and of the texts.
    PromptStates,
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Likelihood => "the models",
            Self::References => "references",
            Self::Strings => "the texts as strings, not as token ids alone",
            Self::Training => "the training text",
            Self::HumanStates => "references, and a model whose hidden states stand for the texts",
            Self::PromptStates => {
                "the prompts that the texts continue, and a model whose hidden states stand for both"
            }
        })
    }
}

impl Measure {
    /// The four bands.
    pub const BANDS: [Self; 4] = [Self::Band(0), Self::Band(1), Self::Band(2), Self::Band(3)];

    /// The measures that occur in any of these, in the order of [`Metric::ALL`].
    pub fn of_metrics(all: &[&Metrics]) -> Vec<Self> {
        let orders = |metric: Metric| {
            let most = all.iter().map(|each| each.orders(metric).len()).max();
            (1..=most.unwrap_or(0)).map(move |order| Self::Metric(metric, order))
        };
        Metric::ALL.into_iter().flat_map(orders).collect()
    }

    /// The further measures selected for any of these, in the order of [`Further::ALL`].
    pub fn of_further(all: &[&Metrics]) -> Vec<Self> {
        let asked = |metric: &Further| {
            all.iter().any(|each| each.further.metrics().any(|other| other == *metric))
        };
        let orders = |metric: Further| {
            metric.orders().iter().map(move |order| Self::Further(metric, *order))
        };
        Further::ALL.into_iter().filter(asked).flat_map(orders).collect()
    }

    /// The direction in which values are better.
    pub fn better(self) -> Better {
        match self {
            Self::Metric(metric, _) => metric.better(),
            Self::Band(_) => Better::CloserToHuman,
            Self::Further(metric, _) => metric.better(),
        }
    }

    /// The largest possible value.
    pub fn most(self) -> f64 {
        match self {
            Self::Metric(metric, _) => metric.most(),
            Self::Band(_) => 1.0,
            Self::Further(metric, _) => metric.most(),
        }
    }

    /// A number that is smaller the better a value is. `None` if the value is missing, or the human
    /// value if the measure needs it.
    pub fn badness(self, value: Option<f64>, human: Option<f64>) -> Option<f64> {
        Some(match self.better() {
            Better::Lower => value?,
            Better::Higher => -value?,
            Better::CloserToHuman => (value? - human?).abs(),
        })
    }
}
