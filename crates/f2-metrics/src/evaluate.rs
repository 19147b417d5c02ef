//! All metrics of a set of texts at once, on one shared index of n-grams.

use std::ops::Range;

use rayon::prelude::*;

use crate::bootstrap::Weights;
use crate::kld::divergence;
use crate::ms_jaccard::{Side, geometric_means, jaccard};
use crate::ngrams::{NgramIndex, Windows};
use crate::uniq::used;
use crate::{
    BandShares, Bands, Bootstrap, Convention, Error, FurtherMetrics, Interval, Metrics, bands,
    bootstrap, distinct, ends_in_loop, self_bleu,
};

/// The settings of [`evaluate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// N-grams of the orders 1 to this.
    pub max_order: usize,
    /// The definitions to use.
    pub convention: Convention,
    /// The frequency bands, if the training counts are known.
    pub bands: Option<Bands>,
    /// How to resample texts for confidence intervals; `None` for no intervals.
    pub bootstrap: Option<Bootstrap>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_order: 3, convention: Convention::Paper, bands: None, bootstrap: None }
    }
}

/// All metrics of a set of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many texts were scored.
    pub texts: usize,
    /// How many tokens they have.
    pub tokens: usize,
    /// The values.
    pub metrics: Metrics,
    /// 95 % intervals, if requested.
    pub intervals: Option<Metrics<Interval>>,
    /// The values of the bootstrap replicates behind the intervals.
    pub replicates: Vec<Metrics>,
    /// Why requested values are missing.
    pub undefined: Vec<Error>,
}

/// Scores a set of generated texts with every metric but perplexity, which needs a model.
///
/// Without references there is no KL divergence and no MS-Jaccard; the references themselves are
/// scored in this way for the Human row of a table. Fails if there are no texts, or if a token is
/// outside the bands' counts.
///
/// ```
/// use f2_metrics::{Settings, evaluate};
/// let human = [vec![1, 2, 3, 4, 5, 6], vec![1, 2, 3, 7, 8, 9]];
/// let model = [vec![1, 2, 1, 2, 1, 2], vec![1, 2, 3, 4, 1, 2]];
/// let evaluation = evaluate(Some(&human), &model, &Settings::default())?;
/// assert_eq!(evaluation.metrics.uniq, Some(4.0));
/// assert_eq!(evaluation.metrics.self_bleu.len(), 3);
/// assert!(evaluation.undefined.is_empty());
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn evaluate<T: AsRef<[u32]> + Sync>(
    references: Option<&[T]>,
    hypotheses: &[T],
    settings: &Settings,
) -> Result<Evaluation, Error> {
    evaluate_watched(references, hypotheses, settings, &|| {})
}

/// [`evaluate`]; calls `drawn` after each bootstrap replicate.
pub fn evaluate_watched<T: AsRef<[u32]> + Sync>(
    references: Option<&[T]>,
    hypotheses: &[T],
    settings: &Settings,
    drawn: &(dyn Fn() + Sync),
) -> Result<Evaluation, Error> {
    let measured = Measured::new(references, hypotheses, settings)?;
    let once = Weights::once(measured.border, hypotheses.len());
    let (metrics, undefined) = measured.score(&once);
    let score = |weights: &Weights| {
        let (metrics, _) = measured.score(weights);
        drawn();
        metrics
    };
    let (texts, bootstrap) = (hypotheses.len(), settings.bootstrap);
    let replicates = bootstrap.map_or_else(Vec::new, |each| each.replicates(&once, score));
    let intervals = bootstrap.map(|_| bootstrap::intervals(&metrics, &replicates, texts));
    let tokens = hypotheses.iter().map(|text| text.as_ref().len()).sum();
    Ok(Evaluation { texts, tokens, metrics, intervals, replicates, undefined })
}

/// The measurements of single texts, before they are aggregated.
pub(crate) struct Measured {
    convention: Convention,
    /// References first, hypotheses from `border` on.
    index: NgramIndex,
    border: usize,
    /// By order and text.
    self_bleu: Result<Vec<Vec<f64>>, Error>,
    /// By order and text.
    distinct: Vec<Vec<Option<f64>>>,
    loops: Vec<bool>,
    bands: Option<Vec<[u32; 4]>>,
}

impl Measured {
    pub(crate) fn new<T: AsRef<[u32]> + Sync>(
        references: Option<&[T]>,
        hypotheses: &[T],
        settings: &Settings,
    ) -> Result<Self, Error> {
        let references = references.unwrap_or_default();
        if hypotheses.is_empty() {
            return Err(Error::NoTexts);
        }
        let bands = settings.bands.as_ref().map(|bands| bands.count(hypotheses)).transpose()?;
        let texts = references.iter().chain(hypotheses).map(AsRef::as_ref);
        // Uniq and KL divergence need unigrams for any `max_order`.
        let index = NgramIndex::new(texts, settings.max_order.max(1))?;
        let (border, convention) = (references.len(), settings.convention);
        let scored = border..border + hypotheses.len();
        let score_self_bleu = || {
            let parts = self_bleu::parts(&index, scored.clone())?;
            Ok(self_bleu::scores(&parts, index.max_order(), convention))
        };
        let (self_bleu, distinct) =
            rayon::join(score_self_bleu, || distinct::shares(&index, scored.clone(), convention));
        let loops = hypotheses.par_iter().map(|text| ends_in_loop(text.as_ref())).collect();
        Ok(Self { convention, index, border, self_bleu, distinct, loops, bands })
    }

    /// The metrics of the weighted texts, and why some are missing.
    pub(crate) fn score(&self, weights: &Weights) -> (Metrics, Vec<Error>) {
        let mut undefined = Vec::new();
        let mut defined =
            |value: Result<f64, Error>| value.map_err(|error| undefined.push(error)).ok();
        let unigrams = self.unigrams(self.hypotheses(), &weights.hypotheses);
        let (kld, ms_jaccard) = match self.border {
            0 => (None, Vec::new()),
            _ => (
                defined(self.kld(&unigrams, weights)),
                self.ms_jaccard(weights).into_iter().map(&mut defined).collect(),
            ),
        };
        let distinct = self.distinct(weights).map(&mut defined).collect();
        let self_bleu = match &self.self_bleu {
            Ok(scores) => scores.iter().map(|each| Some(mean(each, &weights.hypotheses))).collect(),
            Err(error) => {
                defined(Err(error.clone()));
                vec![None; self.index.max_order()]
            }
        };
        let loops = self.loops.iter().zip(&weights.hypotheses);
        let loops: u32 =
            loops.map(|(&ends_in_loop, weight)| u32::from(ends_in_loop) * weight).sum();
        let counted: u32 = weights.hypotheses.iter().sum();
        let metrics = Metrics {
            ppl: None,
            kld,
            ms_jaccard,
            self_bleu,
            distinct,
            rep: Some(f64::from(loops) / f64::from(counted)),
            uniq: Some(used(&unigrams) as f64),
            bands: self.bands(weights),
            further: FurtherMetrics::default(),
        };
        (metrics, first_of_each_metric(undefined))
    }

    fn hypotheses(&self) -> Range<usize> {
        self.border..self.border + self.loops.len()
    }

    fn unigrams(&self, texts: Range<usize>, weights: &[u32]) -> Vec<u32> {
        self.index.counts(1, texts, weights, Windows::Inner)
    }

    fn kld(&self, unigrams: &[u32], weights: &Weights) -> Result<f64, Error> {
        let human = self.unigrams(0..self.border, &weights.references);
        divergence(&human, unigrams, self.convention)
    }

    fn ms_jaccard(&self, weights: &Weights) -> Vec<Result<f64, Error>> {
        let human = Side { texts: 0..self.border, weights: &weights.references };
        let model = Side { texts: self.hypotheses(), weights: &weights.hypotheses };
        let jaccards = (1..=self.index.max_order())
            .into_par_iter()
            .map(|order| jaccard(&self.index, order, &human, &model, self.convention));
        geometric_means(jaccards.collect())
    }

    fn distinct(&self, weights: &Weights) -> impl Iterator<Item = Result<f64, Error>> {
        let orders = (1..).zip(&self.distinct);
        orders.map(|(order, shares)| {
            distinct::mean(shares, &weights.hypotheses, order, self.convention)
        })
    }

    fn bands(&self, weights: &Weights) -> Option<BandShares> {
        let shares = bands::shares(self.bands.as_ref()?, &weights.hypotheses);
        shares.map(BandShares::new)
    }
}

/// If an order is not defined, neither are the longer ones: one reason is enough.
fn first_of_each_metric(mut undefined: Vec<Error>) -> Vec<Error> {
    undefined.dedup_by_key(|error| std::mem::discriminant(error));
    undefined
}

/// The weighted mean of values.
fn mean(values: &[f64], weights: &[u32]) -> f64 {
    let sum: f64 =
        values.iter().zip(weights).map(|(value, &weight)| value * f64::from(weight)).sum();
    sum / weights.iter().map(|&weight| f64::from(weight)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_single_text_gets_everything_but_self_bleu() {
        let evaluation = evaluate(None, &[[1, 2, 3, 4, 5, 6]], &Settings::default()).unwrap();
        assert_eq!(evaluation.metrics.self_bleu, [None; 3]);
        assert_eq!(evaluation.metrics.distinct[0], Some(1.0));
        assert_eq!(evaluation.undefined, [Error::OneText(1)]);
    }

    #[test]
    fn nothing_to_score_is_an_error() {
        let none: [Vec<u32>; 0] = [];
        assert_eq!(evaluate(None, &none, &Settings::default()), Err(Error::NoTexts));
    }

    #[test]
    fn intervals_repeat_with_the_seed_and_hold_the_value() {
        let texts: Vec<Vec<u32>> = (0..40_u32)
            .map(|t| (0..30).map(|i| (t * 7 + i * i * (t % 5 + 1)) % 23).collect())
            .collect();
        let (human, model) = texts.split_at(20);
        let settings = |seed| Settings {
            bands: Some(
                Bands::from_counts(&[
                    9, 8, 7, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                ])
                .unwrap(),
            ),
            bootstrap: Some(Bootstrap { replicates: 50, seed }),
            ..Settings::default()
        };
        let first = evaluate(Some(human), model, &settings(1)).unwrap();
        assert_eq!(first, evaluate(Some(human), model, &settings(1)).unwrap());
        assert_ne!(first.intervals, evaluate(Some(human), model, &settings(2)).unwrap().intervals);
        let intervals = first.intervals.unwrap();
        let kld = intervals.kld.unwrap();
        let value = first.metrics.kld.unwrap();
        assert!(kld.low < value && value < kld.high, "{kld:?} around {value}");
        assert!(intervals.bands.is_some());
        let draws = AtomicUsize::new(0);
        let count = || {
            draws.fetch_add(1, Ordering::Relaxed);
        };
        evaluate_watched(Some(human), model, &settings(1), &count).unwrap();
        assert_eq!(draws.into_inner(), 50);
    }

    #[test]
    fn a_difference_is_drawn_in_pairs() {
        let text = |number: u32, tail: u32| -> Vec<u32> {
            let body = (0..20).map(|place| (number * number * 31 + place * (number % 9 + 1)) % 41);
            body.chain([tail; 3]).collect()
        };
        let human: Vec<Vec<u32>> = (0..50).map(|number| text(number + 50, 9)).collect();
        let one: Vec<Vec<u32>> = (0..50).map(|number| text(number, 1)).collect();
        // The same texts but for the last: every measure is close, text by text.
        let mut two = one.clone();
        two[49] = text(77, 2);
        let settings = Settings {
            bootstrap: Some(Bootstrap { replicates: 200, seed: 3 }),
            ..Settings::default()
        };
        let score = |texts: &[Vec<u32>]| evaluate(Some(&human), texts, &settings).unwrap();
        let (one, two) = (score(&one), score(&two));
        let difference = one.difference(&two).unwrap().kld.unwrap();
        let own = one.intervals.as_ref().unwrap().kld.unwrap();
        let width = |interval: Interval| interval.high - interval.low;
        assert!(width(difference) < width(own) / 2.0, "{difference:?} in {own:?}");
        assert!(difference.holds(one.metrics.kld.unwrap() - two.metrics.kld.unwrap()));
        let none = one.difference(&one).unwrap();
        assert_eq!(none.kld, Some(Interval { low: 0.0, high: 0.0 }));
        assert_eq!(one.difference(&score(&human[..40])), None, "other numbers of texts");
    }

    #[test]
    fn an_interval_of_rep_says_what_the_number_of_texts_allows() {
        let texts: Vec<Vec<u32>> = (0..30_u32).map(|t| (t..t + 9).collect()).collect();
        let bootstrap = Some(Bootstrap { replicates: 20, seed: 1 });
        let settings = Settings { bootstrap, ..Settings::default() };
        let evaluation = evaluate(None, &texts, &settings).unwrap();
        assert_eq!(evaluation.metrics.rep, Some(0.0));
        assert_eq!(evaluation.intervals.unwrap().rep, Some(crate::wilson(0.0, 30)));
    }
}
