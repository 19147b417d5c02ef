//! Evaluation of the selected further metrics on one shared n-gram index.

use rayon::prelude::*;

use super::rep_n::{Repeats, repeats};
use super::statistic::Statistic;
use super::{
    Features, Further, FurtherMetrics, MATTR_WINDOW, MauveSettings, SELF_REPETITION_ORDER,
    SEQ_REP_ORDER, VENDI_ORDERS, ZIPF_RANKS, coherence, compression_ratio, entropy, mattr, mauve,
    novelty, rep_l, rep_n, self_repetition, seq_rep, vendi, zipf,
};
use crate::bootstrap::{self, Weights};
use crate::ngrams::NgramIndex;
use crate::{Bootstrap, Error, Evaluation, Metrics, Need};

/// Which further metrics to compute, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct FurtherSettings {
    /// The metrics.
    pub chosen: Vec<Further>,
    /// The window of MATTR.
    pub mattr_window: usize,
    /// How to resample texts for confidence intervals: as for the other metrics.
    pub bootstrap: Option<Bootstrap>,
    /// How MAUVE clusters.
    pub mauve: MauveSettings,
}

impl Default for FurtherSettings {
    fn default() -> Self {
        Self {
            chosen: Further::ALL.to_vec(),
            mattr_window: MATTR_WINDOW,
            bootstrap: None,
            mauve: MauveSettings::default(),
        }
    }
}

/// A set of texts, and the optional inputs besides its tokens.
#[derive(Debug)]
pub struct FurtherTexts<'a, T> {
    /// Their tokens.
    pub tokens: &'a [T],
    /// The texts as strings.
    pub strings: Option<&'a [String]>,
    /// Their matches in the training text, from [`training_matches`](crate::training_matches).
    pub matches: Option<&'a [Vec<u32>]>,
    /// A model's last hidden states of human texts and of these.
    pub human_and_own: Option<[&'a Features; 2]>,
    /// A model's mean hidden states of the prompts and of the texts, one pair per text.
    pub prompts_and_own: Option<[&'a Features; 2]>,
}

impl<'a, T> FurtherTexts<'a, T> {
    /// Texts without optional inputs.
    pub fn new(tokens: &'a [T]) -> Self {
        Self { tokens, strings: None, matches: None, human_and_own: None, prompts_and_own: None }
    }

    fn has(&self, need: Need) -> bool {
        match need {
            // Inputs of the paper's metrics alone.
            Need::Likelihood | Need::References => false,
            Need::Strings => self.strings.is_some(),
            Need::Training => self.matches.is_some(),
            Need::HumanStates => self.human_and_own.is_some(),
            Need::PromptStates => self.prompts_and_own.is_some(),
        }
    }
}

/// A metric at one order: its per-text statistic, or why it is not defined.
type Measured = (Further, usize, Result<Statistic, Error>);

impl Evaluation {
    /// Adds further metrics of the same texts, with intervals if the evaluation has any. Metrics
    /// that are not defined, or whose input is missing, have no value; the reasons are added to
    /// [`Evaluation::undefined`].
    ///
    /// ```
    /// use f2_metrics::{Further, FurtherSettings, FurtherTexts, Settings, evaluate};
    /// let texts = [vec![1, 2, 1, 2, 1, 2], vec![1, 2, 3, 4, 1, 2]];
    /// let mut evaluation = evaluate(None, &texts, &Settings::default())?;
    /// evaluation.add_further(&FurtherTexts::new(&texts), &FurtherSettings::default())?;
    /// assert_eq!(evaluation.metrics.further.get(Further::RepN, 2), Some(0.4));
    /// # Ok::<(), f2_metrics::Error>(())
    /// ```
    pub fn add_further<T: AsRef<[u32]> + Sync>(
        &mut self,
        texts: &FurtherTexts<'_, T>,
        settings: &FurtherSettings,
    ) -> Result<(), Error> {
        let measured = measure(texts, settings)?;
        let once = Weights::once(0, texts.tokens.len());
        let metrics = Metrics { further: values(&measured, &once), ..Metrics::default() };
        let undefined = measured.iter().filter_map(|(_, _, each)| each.as_ref().err());
        for error in undefined {
            if !self.undefined.contains(error) {
                self.undefined.push(error.clone());
            }
        }
        if let (Some(bootstrap), Some(intervals)) = (settings.bootstrap, &mut self.intervals) {
            let drawn = bootstrap.replicates(&once, |weights| Metrics {
                further: drawn(&measured, weights),
                ..Metrics::default()
            });
            intervals.further = bootstrap::intervals(&metrics, &drawn, self.texts).further;
            for (replicate, drawn) in self.replicates.iter_mut().zip(drawn) {
                replicate.further = drawn.further;
            }
        }
        self.metrics.further = metrics.further;
        Ok(())
    }
}

/// The values of the weighted texts.
fn values(measured: &[Measured], weights: &Weights) -> FurtherMetrics {
    let mut values = FurtherMetrics::default();
    for (metric, order, statistic) in measured {
        let value = statistic.as_ref().ok().and_then(|each| each.value(&weights.hypotheses));
        values.set(*metric, *order, value);
    }
    values
}

/// The values of resampled texts, of the metrics that support resampling.
fn drawn(measured: &[Measured], weights: &Weights) -> FurtherMetrics {
    let mut values = FurtherMetrics::default();
    for (metric, order, statistic) in measured {
        let statistic = statistic.as_ref().ok().filter(|each| each.can_be_drawn());
        values.set(*metric, *order, statistic.and_then(|each| each.value(&weights.hypotheses)));
    }
    values
}

/// Computes the statistics of the selected metrics, each at all its orders.
fn measure<T: AsRef<[u32]> + Sync>(
    texts: &FurtherTexts<'_, T>,
    settings: &FurtherSettings,
) -> Result<Vec<Measured>, Error> {
    let shared = Shared::new(texts, settings)?;
    let chosen = Further::ALL.into_iter().filter(|metric| settings.chosen.contains(metric));
    let each: Vec<(Further, usize)> = chosen
        .flat_map(|metric| metric.orders().iter().map(move |order| (metric, *order)))
        .collect();
    let of_order = |(metric, order): (Further, usize)| {
        let statistic = shared.statistic(metric, order).and_then(|statistic| {
            let value = statistic.value(&vec![1; texts.tokens.len()]);
            value
                .filter(|value| value.is_finite())
                .map(|_| statistic)
                .ok_or(Error::NoNgramsIn { metric: metric.name(), order: shortest(metric, order) })
        });
        (metric, order, statistic)
    };
    Ok(each.into_par_iter().map(of_order).collect())
}

/// The length of the shortest text with a value.
fn shortest(metric: Further, order: usize) -> usize {
    match metric {
        Further::RepN | Further::Entropy | Further::Novelty => order,
        Further::Diversity | Further::SeqRep => SEQ_REP_ORDER,
        _ => 1,
    }
}

/// The inputs shared by several metrics.
struct Shared<'a, T> {
    texts: &'a FurtherTexts<'a, T>,
    settings: &'a FurtherSettings,
    index: NgramIndex,
    /// The repeats of the orders 2 to 4.
    repeats: Vec<Vec<Repeats>>,
    distances: Vec<Vec<u32>>,
}

impl<'a, T: AsRef<[u32]> + Sync> Shared<'a, T> {
    fn new(texts: &'a FurtherTexts<'a, T>, settings: &'a FurtherSettings) -> Result<Self, Error> {
        if texts.tokens.is_empty() {
            return Err(Error::NoTexts);
        }
        let index = NgramIndex::of_texts(texts.tokens, SEQ_REP_ORDER)?;
        let repeats =
            (2..=SEQ_REP_ORDER).into_par_iter().map(|order| repeats(&index, order)).collect();
        let distances = rep_l::distances(&index);
        Ok(Self { texts, settings, index, repeats, distances })
    }

    fn statistic(&self, metric: Further, order: usize) -> Result<Statistic, Error> {
        if let Some(need) = metric.needs().filter(|need| !self.texts.has(*need)) {
            return Err(Error::Needs { metric: metric.name(), need });
        }
        let repeats = |order: usize| &self.repeats[order - 2];
        let index = &self.index;
        Ok(match metric {
            Further::CompressionRatio => {
                Statistic::Whole(compression_ratio(self.texts.strings.unwrap_or_default())?)
            }
            Further::SelfRepetition => self_repetition::mean(index, SELF_REPETITION_ORDER),
            Further::RepN => rep_n::share(repeats(order)),
            Further::Diversity => rep_n::diversity(self.repeats.iter()),
            Further::SeqRep => seq_rep::mean(repeats(SEQ_REP_ORDER)),
            Further::RepL => rep_l::share(&self.distances, order),
            Further::Zipf => Statistic::Whole(zipf::coefficient(index, ZIPF_RANKS)?),
            Further::Entropy => Statistic::Whole(entropy::entropy(index, order)?),
            Further::Mattr => mattr::mean(index, self.settings.mattr_window.max(1)),
            Further::Novelty => novelty::share(self.texts.matches.unwrap_or_default(), order),
            Further::LongestMatch => novelty::longest(self.texts.matches.unwrap_or_default()),
            Further::Vendi => Statistic::Whole(vendi::score(index, VENDI_ORDERS)?),
            Further::Mauve => {
                let [human, own] = self.texts.human_and_own.expect("it has what the metric needs");
                Statistic::Whole(mauve(human, own, &self.settings.mauve)?.mauve)
            }
            Further::Coherence => {
                let [prompts, own] =
                    self.texts.prompts_and_own.expect("it has what the metric needs");
                coherence::mean(prompts, own)?
            }
        })
    }
}
