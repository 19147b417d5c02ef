//! Confidence intervals by drawing texts again, with replacement.
//!
//! Every metric is a function of how often each text counts. Its value counts each once; a
//! replicate counts each as often as it was drawn. What that means for each metric:
//!
//! * Distinct, Rep and the bands average or add up over texts: drawn texts are averaged.
//! * Self-BLEU averages scores that each text got against all others of the full set. The
//!   scores stay; which are averaged is drawn. (A text drawn twice must not match itself.)
//! * KL divergence and MS-Jaccard count n-grams anew on drawn hypotheses and, independently,
//!   drawn references. Uniq counts the tokens of the drawn hypotheses.
//!
//! A draw holds about 63 % of the texts, so counts of types are lower in every replicate and
//! distances larger: the replicates say how far values spread, not where they lie. So the
//! interval is the value plus the replicates' quantiles minus the replicates' mean.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Metrics;

/// How to draw texts for confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many times. 1000 is usual; fewer than 100 say little.
    pub replicates: usize,
    /// The same seed gives the same intervals, on any number of threads.
    pub seed: u64,
}

/// Where 95 % of the values lie that other texts from the same source would give.
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

/// How often each text counts.
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

    /// The interval of each metric of `value`, where `score` measures drawn texts.
    pub(crate) fn intervals(
        self,
        value: &Metrics,
        texts: &Weights,
        score: impl Fn(&Weights) -> Metrics + Sync,
    ) -> Metrics<Interval> {
        let replicate = |replicate: usize| {
            let mut random = Random::new(self.seed, replicate as u64);
            score(&Weights {
                references: random.draw(texts.references.len()),
                hypotheses: random.draw(texts.hypotheses.len()),
            })
        };
        let replicates: Vec<Metrics> =
            (0..self.replicates).into_par_iter().map(replicate).collect();
        spread(value, &replicates)
    }
}

/// The interval around each of these values.
fn spread(value: &Metrics, replicates: &[Metrics]) -> Metrics<Interval> {
    value.map(|measure, value| {
        let drawn = replicates.iter().filter_map(|replicate| replicate.get(measure)).collect();
        interval(value, drawn, measure.most())
    })
}

/// The quantiles of the replicates, moved so that the replicates' mean falls on the value, and
/// kept between 0 and `most`, where the metric itself stays.
fn interval(value: f64, mut replicates: Vec<f64>, most: f64) -> Option<Interval> {
    if replicates.is_empty() {
        return None;
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let mean = replicates.iter().sum::<f64>() / replicates.len() as f64;
    let tail = (1.0 - Bootstrap::LEVEL) / 2.0;
    let low = value - mean + quantile(&replicates, tail);
    let high = value - mean + quantile(&replicates, 1.0 - tail);
    Some(Interval { low: low.max(0.0).min(value), high: high.min(most).max(value) })
}

/// The quantile of sorted values, between two of them in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// `SplitMix64` (Steele et al., 2014), one stream for each replicate.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ stream;
        random.state = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// How often each of `texts` comes up in as many draws.
    fn draw(&mut self, texts: usize) -> Vec<u32> {
        let mut weights = vec![0; texts];
        for _ in 0..texts {
            // The high word of the product is uniform below `texts` but for one part in 2³².
            let text = (u128::from(self.next()) * texts as u128) >> 64;
            weights[text as usize] += 1;
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Random { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    #[test]
    fn draws_are_as_many_as_texts_and_cover_about_two_thirds() {
        let weights = Random::new(3, 0).draw(10_000);
        assert_eq!(weights.iter().sum::<u32>(), 10_000);
        let drawn = weights.iter().filter(|&&weight| weight > 0).count();
        // 1 − 1/e of 10,000, and about seven standard deviations of 31.
        assert!(drawn.abs_diff(6_321) < 220, "{drawn}");
    }

    #[test]
    fn the_interval_is_centred_on_the_value_and_stays_in_range() {
        let replicates: Vec<f64> = (0..=100).map(f64::from).collect();
        let spread = interval(500.0, replicates.clone(), f64::INFINITY).unwrap();
        assert_eq!(spread, Interval { low: 452.5, high: 547.5 });
        let spread = interval(0.5, replicates, 1.0).unwrap();
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
        let spread = interval(0.5, means, 1.0).unwrap();
        // Standard error 0.5 / √400 = 0.025, times 1.96; the tails of 4,000 means are off by
        // less than a twentieth.
        assert!((spread.high - spread.low - 2.0 * 1.96 * 0.025).abs() < 0.005, "{spread:?}");
    }
}
