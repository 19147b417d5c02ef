//! The result of an evaluation as it is stored: what `f2 eval --json` writes and comparisons and
//! reports read.

use std::collections::BTreeMap;

use f2_metrics::{Bootstrap, Convention, Evaluation, Interval, Measure, Metrics};
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
        }
    }

    /// The interval of one value, where it was drawn.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        self.intervals.as_ref()?.metrics.get(measure)
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
        self.intervals.as_ref()?.metrics.get(measure)
    }
}
