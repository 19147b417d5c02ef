//! The stored result of an evaluation: written by `f2 eval --json`, read by comparisons and
//! reports.

use std::collections::BTreeMap;

use f2_metrics::{Bootstrap, Convention, Evaluation, Interval, Measure, Metric, Metrics, wilson};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One model's results as JSON.
///
/// Values are fractions, nats and counts; lists are by order from 1; `null` is a value that is not
/// defined.
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
    /// The set it was evaluated on; only models on the same set are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// `paper` or `textbook`.
    pub convention: String,
    /// The number of texts scored.
    #[serde(default)]
    pub texts: usize,
    /// The number of tokens in them.
    #[serde(default)]
    pub tokens: usize,
    /// The values.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Bootstrap intervals of the values.
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
    /// The number of texts scored.
    #[serde(default)]
    pub texts: usize,
    /// The values, without those that need references.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Bootstrap intervals of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalRecord>,
    /// The ceiling: one half of the references scored against the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<HalfRecord>,
}

/// Half of the texts, scored against the other half of the references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HalfRecord {
    /// The number of texts in each half.
    pub texts: usize,
    /// The seed of the split.
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
    /// The intervals; a difference whose interval contains 0 is not significant.
    #[serde(flatten)]
    pub metrics: Metrics<Interval>,
}

/// Intervals `[low, high]`, and the settings of the bootstrap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// The confidence level.
    pub level: f64,
    /// The number of bootstrap replicates.
    pub replicates: usize,
    /// The seed of the bootstrap.
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

    /// The interval of a value, if there is one.
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

    /// Parses the output of `f2 eval --json`: a single result or a list.
    pub fn list(json: &str) -> serde_json::Result<Vec<Self>> {
        match serde_json::from_str(json)? {
            Value::Array(list) => list.into_iter().map(serde_json::from_value).collect(),
            value => Ok(vec![serde_json::from_value(value)?]),
        }
    }

    /// The interval of a value, if there is one.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        interval(self.intervals.as_ref()?, measure, self.metrics.rep, self.texts)
    }

    /// The difference of a value to that of another model, with its interval, if there is one.
    pub fn difference(&self, other: &Self, measure: Measure) -> Option<(f64, Interval)> {
        let to = |record: &Self, name: &str| {
            record.differences.iter().find(|each| each.to == name)?.metrics.get(measure)
        };
        let turned = |interval: Interval| Interval { low: -interval.high, high: -interval.low };
        let interval = to(self, &other.name).or_else(|| to(other, &self.name).map(turned))?;
        Some((self.metrics.get(measure)? - other.metrics.get(measure)?, interval))
    }
}

/// One of the stored intervals. That of Rep is always the Wilson interval: results of earlier
/// versions have a bootstrap interval, whose width is 0 if no text loops.
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
