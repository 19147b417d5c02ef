//! The result of an evaluation as it is stored: what `f2 eval --json` writes and comparisons and
//! reports read.

use std::collections::BTreeMap;

use f2_metrics::{Bootstrap, Convention, Evaluation, Interval, Measure, Metric, Metrics, wilson};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One model's results as JSON.
///
/// Values are fractions, nats and counts; lists hold the orders from 1 up; `null` is a value
/// that is not defined.
///
/// ```
/// use f2_report::ResultRecord;
/// let record: ResultRecord = serde_json::from_str(
///     r#"{"name": "MLE", "convention": "paper", "kld": 1.51, "self_bleu": [0.934, 0.832]}"#,
/// )?;
/// assert_eq!(record.metrics.self_bleu, [Some(0.934), Some(0.832)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// The model.
    pub name: String,
    /// The set it was evaluated on; models are compared on the same set only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// `paper` or `textbook`.
    pub convention: String,
    /// Texts scored.
    #[serde(default)]
    pub texts: usize,
    /// Tokens in them.
    #[serde(default)]
    pub tokens: usize,
    /// The values.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Bootstrap intervals of all these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalRecord>,
    /// Differences to the models scored before this one, by paired bootstrap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DifferenceRecord>,
    /// The metrics of half of the texts, comparable with those of half of the human texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<HalfRecord>,
    /// The same metrics of the references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<HumanRecord>,
    /// One line of definition for each metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, String>,
}

/// The metrics of human text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HumanRecord {
    /// Texts scored.
    #[serde(default)]
    pub texts: usize,
    /// The values; none that need references.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Bootstrap intervals of all these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalRecord>,
    /// The ceiling: one half of the references scored against the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<HalfRecord>,
}

/// Half of the texts, scored against the other half of the references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HalfRecord {
    /// Texts in each half.
    pub texts: usize,
    /// The seed of the cut.
    pub seed: u64,
    /// The values.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The intervals of a model's values minus those of another model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DifferenceRecord {
    /// The other model.
    pub to: String,
    /// The intervals; a difference whose interval holds 0 is not significant.
    #[serde(flatten)]
    pub metrics: Metrics<Interval>,
}

/// Intervals `[low, high]`, and how they were drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// The share of values an interval is to hold.
    pub level: f64,
    /// Sets of texts drawn.
    pub replicates: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// The intervals.
    #[serde(flatten)]
    pub metrics: Metrics<Interval>,
}

impl IntervalRecord {
    fn new(evaluation: &Evaluation, bootstrap: Option<Bootstrap>) -> Option<Self> {
        let (metrics, bootstrap) = (evaluation.intervals.clone()?, bootstrap?);
        let Bootstrap { replicates, seed } = bootstrap;
        Some(Self { level: Bootstrap::LEVEL, replicates, seed, metrics })
    }
}

impl HumanRecord {
    /// The record of an evaluation of the references.
    pub fn new(evaluation: &Evaluation, bootstrap: Option<Bootstrap>) -> Self {
        Self {
            texts: evaluation.texts,
            metrics: evaluation.metrics.clone(),
            intervals: IntervalRecord::new(evaluation, bootstrap),
            half: None,
        }
    }

    /// The interval of one value, where it was drawn.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        interval(self.intervals.as_ref()?, measure, self.metrics.rep, self.texts)
    }
}

impl HalfRecord {
    /// The record of an evaluation of half of the texts.
    pub fn new(evaluation: &Evaluation, seed: u64) -> Self {
        Self { texts: evaluation.texts, seed, metrics: evaluation.metrics.clone() }
    }
}

impl ResultRecord {
    /// The record of an evaluation.
    pub fn new(
        name: &str,
        convention: Convention,
        evaluation: &Evaluation,
        bootstrap: Option<Bootstrap>,
        human: Option<&HumanRecord>,
    ) -> Self {
        let mut metrics = evaluation.metrics.clone();
        if let Some(human_bands) = human.and_then(|human| human.metrics.bands) {
            metrics.bands = metrics.bands.map(|own| own.beside(&human_bands));
        }
        let further = metrics.further.metrics();
        let further: Vec<(String, String)> =
            further.map(|metric| (metric.name().to_owned(), metric.definition())).collect();
        Self {
            name: name.to_owned(),
            convention: convention.to_string(),
            texts: evaluation.texts,
            tokens: evaluation.tokens,
            metrics,
            intervals: IntervalRecord::new(evaluation, bootstrap),
            human: human.cloned(),
            definitions: crate::definitions(convention)
                .map(|(metric, line)| (metric.to_owned(), line.to_owned()))
                .chain(further)
                .collect(),
            ..Self::default()
        }
    }

    /// The results in what `f2 eval --json` prints: one, or a list of them.
    pub fn list(json: &str) -> serde_json::Result<Vec<Self>> {
        match serde_json::from_str(json)? {
            Value::Array(list) => list.into_iter().map(serde_json::from_value).collect(),
            value => Ok(vec![serde_json::from_value(value)?]),
        }
    }

    /// The interval of one value, where it was drawn.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        interval(self.intervals.as_ref()?, measure, self.metrics.rep, self.texts)
    }

    /// The difference of one value to that of another model and its interval, where it was drawn.
    pub fn difference(&self, other: &Self, measure: Measure) -> Option<(f64, Interval)> {
        let to = |record: &Self, name: &str| {
            record.differences.iter().find(|each| each.to == name)?.metrics.get(measure)
        };
        let turned = |interval: Interval| Interval { low: -interval.high, high: -interval.low };
        let interval = to(self, &other.name).or_else(|| to(other, &self.name).map(turned))?;
        Some((self.metrics.get(measure)? - other.metrics.get(measure)?, interval))
    }
}

/// One of the stored intervals. That of Rep follows from its counts: results of earlier versions
/// hold one of the bootstrap, which has no width where no text loops.
fn interval(
    all: &IntervalRecord,
    measure: Measure,
    rep: Option<f64>,
    texts: usize,
) -> Option<Interval> {
    match (measure, rep) {
        (Measure::Metric(Metric::Rep, _), Some(rep)) if texts > 0 => Some(wilson(rep, texts)),
        _ => all.metrics.get(measure),
    }
}
