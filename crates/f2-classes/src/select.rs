//! Choosing K and the classes by a method.

use rayon::prelude::*;

use crate::objective::Objective;
use crate::selection::{ClassSelection, Trial};
use crate::{ClassesError, FrequencyClasses, Method, RankCounts, author_score, greedy};

/// Values closer than this are ties, which the smaller K wins, so that rounding never affects K.
const TIE: f64 = 1e-9;

/// Cuts the vocabulary into classes, with a given K or the one the method chooses.
///
/// ```
/// use f2_classes::{Method, RankCounts, select};
///
/// let counts = RankCounts::new(&[4, 2, 1, 1])?;
/// assert_eq!(select(&counts, Method::Greedy, Some(3))?.classes().ends(), [1, 2, 4]);
/// # Ok::<(), f2_classes::ClassesError>(())
/// ```
pub fn select(
    counts: &RankCounts,
    method: Method,
    k: Option<usize>,
) -> Result<ClassSelection, ClassesError> {
    let objective = Objective::new(counts);
    let ks = match k {
        Some(k) => reachable(k, counts.vocabulary())?..=k,
        None => method.range(counts),
    };
    let cut = method.cutter(&objective, ks.clone());
    let tried: Vec<Tried> = ks
        .into_par_iter()
        .filter_map(|k| cut(k).map(|ends| Tried::new(method, &objective, counts, ends)))
        .collect::<Result<_, _>>()?;
    let chosen = match method {
        Method::Greedy | Method::Exact | Method::Author => best(&tried),
        Method::EqualTokens | Method::EqualFrequency => {
            Some(k.unwrap_or_else(|| greedy_k(&objective, counts)))
        }
    };
    let ends = match (chosen.and_then(&cut), k) {
        (Some(ends), _) => ends,
        (None, Some(k)) => return Err(ClassesError::Unreachable { k }),
        (None, None) => vec![counts.vocabulary()],
    };
    let trials = tried.iter().map(|tried| Trial { k: tried.k, objective: tried.objective });
    let classes = FrequencyClasses::new(ends)?;
    Ok(ClassSelection::new(method, counts, classes, trials.collect()))
}

/// A number of classes, its value of Eq. 5, and the score by which the method chooses.
struct Tried {
    k: usize,
    objective: f64,
    score: f64,
}

impl Tried {
    fn new(
        method: Method,
        objective: &Objective,
        counts: &RankCounts,
        ends: Vec<usize>,
    ) -> Result<Self, ClassesError> {
        let (k, objective) = (ends.len(), objective.value(&ends));
        // The authors' program compares products, not Eq. 5.
        let score = match method {
            Method::Author => author_score(counts, &FrequencyClasses::new(ends)?),
            _ => objective,
        };
        Ok(Self { k, objective, score })
    }
}

fn reachable(k: usize, tokens: usize) -> Result<usize, ClassesError> {
    match k {
        0 => Err(ClassesError::NoClasses),
        k if k > tokens => Err(ClassesError::MoreClassesThanTokens { k, tokens }),
        k => Ok(k),
    }
}

/// The K with the largest score; among ties, the smallest.
fn best(tried: &[Tried]) -> Option<usize> {
    let mut best = tried.first()?;
    for each in tried {
        if each.score > best.score + TIE {
            best = each;
        }
    }
    Some(best.k)
}

/// The K that Algorithm 1 chooses.
fn greedy_k(objective: &Objective, counts: &RankCounts) -> usize {
    let ks = Method::Greedy.range(counts);
    let value = |k: usize| objective.value(&greedy::ends(&objective.sums, k));
    let tried: Vec<Tried> = ks
        .into_par_iter()
        .map(|k| (k, value(k)))
        .map(|(k, objective)| Tried { k, objective, score: objective })
        .collect();
    best(&tried).unwrap_or(1)
}
