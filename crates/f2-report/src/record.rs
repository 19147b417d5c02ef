use std::collections::BTreeMap;

use f2_metrics::{BAND_NAMES, Bootstrap, Convention, Evaluation, Interval, Metrics};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One model's results as JSON: what an evaluation writes and a comparison reads.
///
/// Values are fractions, nats and counts; lists hold the orders from 1 up; `null` is a value
/// that is not defined.
///
/// ```
/// use f2_report::ResultRecord;
/// let record: ResultRecord = serde_json::from_str(
///     r#"{"name": "MLE", "convention": "paper", "kld": 1.51, "self_bleu": [0.934, 0.832]}"#,
/// )?;
/// assert_eq!(record.metrics().self_bleu, [Some(0.934), Some(0.832)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// The model.
    pub name: String,
    /// What it was evaluated on; models are compared on the same set only.
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
    /// Perplexity, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppl: Option<f64>,
    /// KL divergence of unigrams from the references, in nats.
    #[serde(default)]
    pub kld: Option<f64>,
    /// MS-Jaccard with the references.
    #[serde(default)]
    pub ms_jaccard: Vec<Option<f64>>,
    /// Self-BLEU.
    #[serde(default)]
    pub self_bleu: Vec<Option<f64>>,
    /// Distinct.
    #[serde(default)]
    pub distinct: Vec<Option<f64>>,
    /// The share of texts that end in a loop.
    #[serde(default)]
    pub rep: Option<f64>,
    /// The number of different tokens.
    #[serde(default)]
    pub uniq: Option<u64>,
    /// Shares of frequency bands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands: Option<BandShares>,
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

/// The metrics that human text has too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HumanRecord {
    /// Texts scored.
    #[serde(default)]
    pub texts: usize,
    /// Self-BLEU.
    pub self_bleu: Vec<Option<f64>>,
    /// Distinct.
    pub distinct: Vec<Option<f64>>,
    /// The share of texts that end in a loop.
    pub rep: Option<f64>,
    /// The number of different tokens.
    pub uniq: Option<u64>,
    /// Shares of frequency bands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands: Option<BandShares>,
    /// Bootstrap intervals of all these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalRecord>,
}

/// Shares of tokens by frequency in the training corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BandShares {
    /// Up to 40 % of the training tokens.
    pub frequent: f64,
    /// Up to 70 %.
    pub medium: f64,
    /// Up to 90 %.
    pub rare: f64,
    /// The rest. Its share is called VR.
    pub very_rare: f64,
    /// Differences to human relative to human, in the same order; `null` where human has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to_human: Option<[Option<f64>; 4]>,
}

impl BandShares {
    fn new(shares: [Option<f64>; 4]) -> Option<Self> {
        let [Some(frequent), Some(medium), Some(rare), Some(very_rare)] = shares else {
            return None;
        };
        Some(Self { frequent, medium, rare, very_rare, relative_to_human: None })
    }

    /// From the most frequent band to the least.
    pub fn shares(&self) -> [f64; 4] {
        [self.frequent, self.medium, self.rare, self.very_rare]
    }

    fn beside(mut self, human: &Self) -> Self {
        let (own, human) = (self.shares(), human.shares());
        let relative =
            |band: usize| (human[band] > 0.0).then(|| (own[band] - human[band]) / human[band]);
        self.relative_to_human = Some([0, 1, 2, 3].map(relative));
        self
    }
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
    /// Of KL divergence.
    pub kld: Option<[f64; 2]>,
    /// Of MS-Jaccard.
    pub ms_jaccard: Vec<Option<[f64; 2]>>,
    /// Of Self-BLEU.
    pub self_bleu: Vec<Option<[f64; 2]>>,
    /// Of Distinct.
    pub distinct: Vec<Option<[f64; 2]>>,
    /// Of Rep.
    pub rep: Option<[f64; 2]>,
    /// Of Uniq.
    pub uniq: Option<[f64; 2]>,
    /// Of the bands, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bands: BTreeMap<String, [f64; 2]>,
}

impl IntervalRecord {
    fn new(intervals: &Metrics<Interval>, bootstrap: Bootstrap) -> Self {
        let pair = |interval: &Option<Interval>| interval.map(|each| [each.low, each.high]);
        let pairs = |list: &[Option<Interval>]| list.iter().map(pair).collect();
        let bands = BAND_NAMES.into_iter().zip(&intervals.bands);
        Self {
            level: Bootstrap::LEVEL,
            replicates: bootstrap.replicates,
            seed: bootstrap.seed,
            kld: pair(&intervals.kld),
            ms_jaccard: pairs(&intervals.ms_jaccard),
            self_bleu: pairs(&intervals.self_bleu),
            distinct: pairs(&intervals.distinct),
            rep: pair(&intervals.rep),
            uniq: pair(&intervals.uniq),
            bands: bands.filter_map(|(name, each)| Some((name.to_owned(), pair(each)?))).collect(),
        }
    }
}

impl HumanRecord {
    /// The record of an evaluation of the references.
    pub fn new(evaluation: &Evaluation, bootstrap: Option<Bootstrap>) -> Self {
        let metrics = &evaluation.metrics;
        Self {
            texts: evaluation.texts,
            self_bleu: metrics.self_bleu.clone(),
            distinct: metrics.distinct.clone(),
            rep: metrics.rep,
            uniq: metrics.uniq.map(|uniq| uniq as u64),
            bands: BandShares::new(metrics.bands),
            intervals: intervals(evaluation, bootstrap),
        }
    }

    /// The values alone.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            self_bleu: self.self_bleu.clone(),
            distinct: self.distinct.clone(),
            rep: self.rep,
            uniq: self.uniq.map(|uniq| uniq as f64),
            ..Metrics::default()
        }
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
        let metrics = &evaluation.metrics;
        let bands = BandShares::new(metrics.bands);
        let human_bands = human.and_then(|human| human.bands);
        Self {
            name: name.to_owned(),
            convention: convention.to_string(),
            texts: evaluation.texts,
            tokens: evaluation.tokens,
            kld: metrics.kld,
            ms_jaccard: metrics.ms_jaccard.clone(),
            self_bleu: metrics.self_bleu.clone(),
            distinct: metrics.distinct.clone(),
            rep: metrics.rep,
            uniq: metrics.uniq.map(|uniq| uniq as u64),
            bands: match (bands, human_bands) {
                (Some(own), Some(human)) => Some(own.beside(&human)),
                _ => bands,
            },
            intervals: intervals(evaluation, bootstrap),
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

    /// The values alone.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            kld: self.kld,
            ms_jaccard: self.ms_jaccard.clone(),
            self_bleu: self.self_bleu.clone(),
            distinct: self.distinct.clone(),
            rep: self.rep,
            uniq: self.uniq.map(|uniq| uniq as f64),
            ..Metrics::default()
        }
    }
}

fn intervals(evaluation: &Evaluation, bootstrap: Option<Bootstrap>) -> Option<IntervalRecord> {
    Some(IntervalRecord::new(evaluation.intervals.as_ref()?, bootstrap?))
}
