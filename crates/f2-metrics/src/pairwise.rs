//! Matches between models, metric by metric, and the ranking that follows.
//!
//! Each of the seven metrics gives one point: lower perplexity and KL divergence, higher
//! MS-Jaccard, and a Self-BLEU, Distinct, Rep and Uniq closer to human. The model with
//! more points wins the match. The paper does not say which n-gram order represents a metric; a
//! [`Rule`] does.

use std::cmp::Ordering;

use crate::{Measure, Metric, Metrics};

/// Values closer than this are tied. Fractions parsed from equal decimal numbers differ by less,
/// and no metric is known to nine digits.
const LEVEL: f64 = 1e-9;

/// The value that represents a metric with several orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// One order.
    Order(usize),
    /// The mean over the orders: of values, or of their distances to human.
    Mean,
}

/// The values that represent MS-Jaccard, Self-BLEU and Distinct in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// For MS-Jaccard.
    pub ms_jaccard: Fold,
    /// For Self-BLEU.
    pub self_bleu: Fold,
    /// For Distinct.
    pub distinct: Fold,
}

impl Rule {
    /// MS-Jaccard-2, Self-BLEU-2 and Distinct-3: the rule that fits every match the paper prints.
    pub const FITTED: Self =
        Self { ms_jaccard: Fold::Order(2), self_bleu: Fold::Order(2), distinct: Fold::Order(3) };
    /// Bigrams throughout.
    pub const BIGRAM: Self = Self::all(Fold::Order(2));

    /// The order that represents a metric; `None` if it is the mean over the orders.
    pub fn order(self, metric: Metric) -> Option<usize> {
        match self.fold(metric) {
            Fold::Order(order) => Some(order),
            Fold::Mean => None,
        }
    }

    fn fold(self, metric: Metric) -> Fold {
        match metric {
            Metric::MsJaccard => self.ms_jaccard,
            Metric::SelfBleu => self.self_bleu,
            Metric::Distinct => self.distinct,
            _ => Fold::Order(1),
        }
    }

    /// The same for all three metrics.
    pub const fn all(fold: Fold) -> Self {
        Self { ms_jaccard: fold, self_bleu: fold, distinct: fold }
    }
}

/// The outcome of one match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Who wins the point of each of [`Metric::ALL`]: `Greater` if the first model, `Less` if the
    /// second, `Equal` if the values are tied, `None` if one side lacks the value.
    pub points: [Option<Ordering>; Metric::ALL.len()],
    /// Points won and lost over all orders of all metrics, the tie-break.
    pub all_orders: (usize, usize),
}

impl Match {
    /// Points of the first model.
    pub fn won(&self) -> usize {
        self.count(Ordering::Greater)
    }

    /// Points of the second model.
    pub fn lost(&self) -> usize {
        self.count(Ordering::Less)
    }

    /// Metrics whose values are tied.
    pub fn level(&self) -> impl Iterator<Item = Metric> {
        let points = Metric::ALL.into_iter().zip(self.points);
        points.filter(|&(_, point)| point == Some(Ordering::Equal)).map(|(metric, _)| metric)
    }

    /// Whether the points are tied, so that all orders decide.
    pub fn needs_all_orders(&self) -> bool {
        self.won() == self.lost()
    }

    /// The winner by points, then by all orders: `Greater` if the first model.
    pub fn winner(&self) -> Ordering {
        let (won, lost) = self.all_orders;
        self.won().cmp(&self.lost()).then(won.cmp(&lost))
    }

    fn count(&self, outcome: Ordering) -> usize {
        self.points.iter().filter(|&&point| point == Some(outcome)).count()
    }
}

/// Plays one match.
///
/// ```
/// use f2_metrics::Metrics;
/// use f2_metrics::pairwise::{Rule, play};
/// use std::cmp::Ordering;
///
/// let model = |ppl, kld, rep| {
///     Metrics { ppl: Some(ppl), kld: Some(kld), rep: Some(rep), ..Metrics::default() }
/// };
/// let human = Metrics { rep: Some(0.01), ..Metrics::default() };
/// let outcome = play(&model(25.6, 0.62, 0.02), &model(24.7, 1.51, 0.18), &human, Rule::FITTED);
/// assert_eq!((outcome.won(), outcome.lost()), (2, 1));
/// assert_eq!(outcome.winner(), Ordering::Greater);
/// ```
pub fn play(first: &Metrics, second: &Metrics, human: &Metrics, rule: Rule) -> Match {
    let points = Metric::ALL.map(|metric| point(first, second, human, metric, rule.fold(metric)));
    Match { points, all_orders: play_all_orders(first, second, human) }
}

fn play_all_orders(first: &Metrics, second: &Metrics, human: &Metrics) -> (usize, usize) {
    let (mut won, mut lost) = (0, 0);
    for metric in Metric::ALL {
        for order in 1..=first.orders(metric).len() {
            match point(first, second, human, metric, Fold::Order(order)) {
                Some(Ordering::Greater) => won += 1,
                Some(Ordering::Less) => lost += 1,
                _ => {}
            }
        }
    }
    (won, lost)
}

/// Who wins the point of one metric.
fn point(
    first: &Metrics,
    second: &Metrics,
    human: &Metrics,
    metric: Metric,
    fold: Fold,
) -> Option<Ordering> {
    let first = badness(first, human, metric, fold)?;
    let second = badness(second, human, metric, fold)?;
    let level = (first - second).abs() <= LEVEL * first.abs().max(second.abs()).max(1.0);
    Some(if level { Ordering::Equal } else { second.total_cmp(&first) })
}

/// A number that is smaller the better a model's value of a metric is.
fn badness(model: &Metrics, human: &Metrics, metric: Metric, fold: Fold) -> Option<f64> {
    let of_order = |order: usize| {
        let measure = Measure::Metric(metric, order);
        measure.badness(model.get(measure), human.get(measure))
    };
    match fold {
        Fold::Order(order) => of_order(order),
        Fold::Mean => {
            let orders = model.orders(metric).len();
            (1..=orders).map(of_order).sum::<Option<f64>>().map(|sum| sum / orders as f64)
        }
    }
}

/// A model's matches over all corpora.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Matches won.
    pub won: usize,
    /// Matches lost.
    pub lost: usize,
    /// Matches drawn.
    pub drawn: usize,
}

impl Tally {
    /// Adds one match, from this model's perspective.
    pub fn add(&mut self, outcome: Ordering) {
        match outcome {
            Ordering::Greater => self.won += 1,
            Ordering::Less => self.lost += 1,
            Ordering::Equal => self.drawn += 1,
        }
    }
}

/// Ranks models by their tallies: most matches won, then fewest lost. Equal tallies keep their
/// order. Returns indices into `tallies`.
///
/// ```
/// use f2_metrics::pairwise::{Tally, ranking};
/// let tally = |won, lost| Tally { won, lost, drawn: 0 };
/// assert_eq!(ranking(&[tally(2, 6), tally(7, 1), tally(5, 3)]), [1, 2, 0]);
/// ```
pub fn ranking(tallies: &[Tally]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tallies.len()).collect();
    order.sort_by_key(|&model| (std::cmp::Reverse(tallies[model].won), tallies[model].lost));
    order
}
