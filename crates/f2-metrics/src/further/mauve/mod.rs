//! MAUVE: the similarity of the distributions of two sets of texts (Pillutla et al., 2021).
//!
//! Texts are represented as points, the hidden states of a model. `reduce` projects them onto
//! principal components, `cluster` clusters both sets together, and `curve` compares the two
//! histograms over the clusters.

mod cluster;
mod curve;
mod mersenne;
mod reduce;

use crate::Error;
use cluster::Clustering;
pub use curve::{Frontier, frontier};

/// A set of points of equal dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    width: usize,
    rows: Vec<f32>,
}

/// How the points are clustered and compared; the defaults are those of the package `mauve-text`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MauveSettings {
    /// The number of clusters, at least 2; if `None`, a tenth of the smaller set's points.
    pub clusters: Option<usize>,
    /// The share of the variance that the principal components kept must explain.
    pub explained_variance: f64,
    /// Runs of k-means from different starting points; the best one is kept.
    pub attempts: usize,
    /// The largest number of steps of one attempt.
    pub steps: usize,
    /// The scaling constant c of the paper.
    pub scaling: f64,
    /// The random seed for the starting points of k-means.
    pub seed: u64,
}

impl Default for MauveSettings {
    fn default() -> Self {
        Self {
            clusters: None,
            explained_variance: 0.9,
            attempts: 5,
            steps: 500,
            scaling: 5.0,
            seed: 25,
        }
    }
}

impl Features {
    /// From concatenated points. `None` if `rows` is not a multiple of `width`, or has a value that
    /// is not finite.
    pub fn new(width: usize, rows: Vec<f32>) -> Option<Self> {
        let whole = width > 0 && rows.len().is_multiple_of(width);
        let numbers = rows.iter().all(|value| value.is_finite());
        (whole && numbers).then_some(Self { width, rows })
    }

    /// The number of points.
    pub fn count(&self) -> usize {
        self.rows.len() / self.width
    }

    /// The dimension of each point.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The points.
    pub fn points(&self) -> impl Iterator<Item = &[f32]> {
        self.rows.chunks_exact(self.width)
    }
}

/// MAUVE of the points of human texts and those of a model's texts.
///
/// ```
/// use f2_metrics::{Features, MauveSettings, mauve};
/// let points = |shift: f32| {
///     let rows = (0..60).flat_map(|i| [(i % 7) as f32 + shift, (i % 5) as f32, 1.0]);
///     Features::new(3, rows.collect()).unwrap()
/// };
/// let settings = MauveSettings::default();
/// let same = mauve(&points(0.0), &points(0.0), &settings)?.mauve;
/// let other = mauve(&points(0.0), &points(9.0), &settings)?.mauve;
/// assert!(same > 0.99 && other < 0.5);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn mauve(
    human: &Features,
    model: &Features,
    settings: &MauveSettings,
) -> Result<Frontier, Error> {
    let [human_counts, model_counts] = mauve_counts(human, model, settings)?;
    Ok(frontier(&human_counts, &model_counts, settings.scaling))
}

/// The number of human and model points in each cluster.
pub fn mauve_counts(
    human: &Features,
    model: &Features,
    settings: &MauveSettings,
) -> Result<[Vec<u32>; 2], Error> {
    let fewest = human.count().min(model.count());
    if fewest < 2 {
        return Err(Error::FewPoints(fewest));
    }
    if human.width != model.width {
        return Err(Error::Widths([human.width, model.width]));
    }
    // Half a cluster is rounded to the even number, as in Python.
    let tenth = (fewest as f64 / 10.0).round_ties_even() as usize;
    let clusters = settings.clusters.unwrap_or(tenth).max(2);
    // The model's points come first, as in `mauve-text`: the order determines the starting points.
    let all = [&model.rows[..], &human.rows].concat();
    let reduced = reduce::reduce(human.width, &all, settings.explained_variance);
    let clustering = Clustering {
        clusters,
        attempts: settings.attempts,
        steps: settings.steps,
        seed: settings.seed.wrapping_add(2),
    };
    let labels = clustering.labels(&reduced);
    let count = |labels: &[u32]| {
        let mut counts = vec![0; clusters];
        labels.iter().for_each(|label| counts[*label as usize] += 1);
        counts
    };
    Ok([count(&labels[model.count()..]), count(&labels[..model.count()])])
}
