//! Bootstrap confidence intervals: texts are resampled with replacement.
//!
//! Every metric is a function of the weight of each text. In its value every text has weight 1; in
//! a replicate, the number of times it was drawn. For each metric:
//!
//! * Distinct and the bands are means or sums over the resampled texts.
//! * Rep is a share of texts that is often 0, and then 0 in every replicate as well: its interval
//!   is that of [`wilson`].
//! * Self-BLEU is the mean score of the resampled texts; each keeps its score against all others
//!   of the full set. (A text drawn twice must not match itself.)
//! * KL divergence and MS-Jaccard recount n-grams in resampled hypotheses and, independently,
//!   resampled references. Uniq counts the tokens of the resampled hypotheses.
//!
//! A replicate contains about 63 % of the distinct texts, so counts of types are lower in every
//! replicate and distances larger: the replicates estimate the spread of a value, not its location.
//! The interval is therefore the value plus the replicates' quantiles minus the replicates' mean.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::{Evaluation, Measure, Metric, Metrics, wilson};

/// How texts are resampled for confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many times. 1000 is usual; fewer than 100 are unreliable.
    pub replicates: usize,
    /// The same seed gives the same intervals, on any number of threads.
    pub seed: u64,
}

/// A 95 % confidence interval for other texts from the same source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<[f64; 2]> for Interval {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for [f64; 2] {
    fn from(Interval { low, high }: Interval) -> Self {
        [low, high]
    }
}

/// The weight of each text.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub(crate) references: Vec<u32>,
    pub(crate) hypotheses: Vec<u32>,
}

impl Weights {
    /// Every text once.
    pub(crate) fn once(references: usize, hypotheses: usize) -> Self {
        Self { references: vec![1; references], hypotheses: vec![1; hypotheses] }
    }
}

impl Bootstrap {
    /// The share of replicates inside an interval.
    pub const LEVEL: f64 = 0.95;

    /// The metrics of each replicate, computed by `score`.
    pub(crate) fn replicates(
        self,
        texts: &Weights,
        score: impl Fn(&Weights) -> Metrics + Sync,
    ) -> Vec<Metrics> {
        let replicate = |replicate: usize| {
            let mut random = Random::new(self.seed, replicate as u64);
            score(&Weights {
                references: random.draw(texts.references.len()),
                hypotheses: random.draw(texts.hypotheses.len()),
            })
        };
        (0..self.replicates).into_par_iter().map(replicate).collect()
    }
}

/// The interval of each value, from its replicates and the number of texts.
pub(crate) fn intervals(
    value: &Metrics,
    replicates: &[Metrics],
    texts: usize,
) -> Metrics<Interval> {
    value.map(|measure, value| {
        if measure == Measure::Metric(Metric::Rep, 1) {
            return Some(wilson(value, texts));
        }
        let drawn = replicates.iter().filter_map(|replicate| replicate.get(measure)).collect();
        interval(value, drawn, 0.0, measure.most())
    })
}

impl Evaluation {
    /// The interval of the difference of each value to that of another model, by paired
    /// bootstrap: in each replicate, both are scored on continuations of the same resampled
    /// prefixes against the same resampled references. A difference whose interval contains 0 is
    /// not significant.
    ///
    /// Both evaluations must use the same seed and references, and texts that continue the same
    /// prefixes in the same order. `None` if their numbers differ or there are no replicates.
    pub fn difference(&self, other: &Self) -> Option<Metrics<Interval>> {
        let draws = self.replicates.len();
        if draws == 0 || draws != other.replicates.len() || self.texts != other.texts {
            return None;
        }
        let pairs = || self.replicates.iter().zip(&other.replicates);
        Some(self.metrics.map(|measure, value| {
            let value = value - other.metrics.get(measure)?;
            let drawn =
                pairs().filter_map(|(one, two)| Some(one.get(measure)? - two.get(measure)?));
            interval(value, drawn.collect(), f64::NEG_INFINITY, f64::INFINITY)
        }))
    }
}

impl Interval {
    /// Whether a value lies inside, the ends included.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The quantiles of the replicates, shifted so that the replicates' mean becomes the value, and
/// clipped to the range of the metric.
fn interval(value: f64, mut replicates: Vec<f64>, least: f64, most: f64) -> Option<Interval> {
    if replicates.is_empty() {
        return None;
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let mean = replicates.iter().sum::<f64>() / replicates.len() as f64;
    let tail = (1.0 - Bootstrap::LEVEL) / 2.0;
    let low = value - mean + quantile(&replicates, tail);
    let high = value - mean + quantile(&replicates, 1.0 - tail);
    Some(Interval { low: low.max(least).min(value), high: high.min(most).max(value) })
}

/// The quantile of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_centred_on_the_value_and_stays_in_range() {
        let replicates: Vec<f64> = (0..=100).map(f64::from).collect();
        let spread = interval(500.0, replicates.clone(), 0.0, f64::INFINITY).unwrap();
        assert_eq!(spread, Interval { low: 452.5, high: 547.5 });
        let spread = interval(0.5, replicates, 0.0, 1.0).unwrap();
        assert_eq!(spread, Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn the_interval_of_a_mean_is_as_wide_as_theory_says() {
        let shares: Vec<f64> = (0..400).map(|text| f64::from(text % 2)).collect();
        let means: Vec<f64> = (0..4_000)
            .map(|stream| {
                let weights = Random::new(11, stream).draw(shares.len());
                let sum: f64 = shares.iter().zip(&weights).map(|(x, &w)| x * f64::from(w)).sum();
                sum / shares.len() as f64
            })
            .collect();
        let spread = interval(0.5, means, 0.0, 1.0).unwrap();
        // Standard error 0.5 / √400 = 0.025, times 1.96; the tails of 4,000 means are off by
        // less than a twentieth.
        assert!((spread.high - spread.low - 2.0 * 1.96 * 0.025).abs() < 0.005, "{spread:?}");
    }
}
