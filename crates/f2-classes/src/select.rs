use rayon::prelude::*;

use crate::objective::Objective;
use crate::selection::{ClassSelection, Trial};
use crate::{ClassesError, FrequencyClasses, Method, RankCounts, author_score};

/// Values closer than this are ties, which the smaller K wins: rounding never decides K.
const TIE: f64 = 1e-9;

/// Cuts the vocabulary into classes, with a given K or the one the method prefers.
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
    let tried = method.cut(&objective, ks);
    let values: Vec<f64> = tried.par_iter().map(|ends| objective.value(ends)).collect();
    let chosen = match method {
        Method::Greedy | Method::Exact => Some(best(&values)),
        Method::Author => author_choice(counts, &tried)?,
        Method::EqualTokens | Method::EqualFrequency => {
            let like_greedy = k.unwrap_or_else(|| greedy_k(&objective, counts));
            tried.iter().position(|ends| ends.len() == like_greedy)
        }
    };
    let ends = match (chosen, k) {
        (Some(chosen), _) => tried[chosen].clone(),
        (None, Some(k)) => return Err(ClassesError::Unreachable { k }),
        (None, None) => vec![counts.vocabulary()],
    };
    let trials =
        tried.iter().zip(values).map(|(ends, objective)| Trial { k: ends.len(), objective });
    let classes = FrequencyClasses::new(ends)?;
    Ok(ClassSelection::new(method, counts, classes, trials.collect()))
}

fn reachable(k: usize, tokens: usize) -> Result<usize, ClassesError> {
    match k {
        0 => Err(ClassesError::NoClasses),
        k if k > tokens => Err(ClassesError::MoreClassesThanTokens { k, tokens }),
        k => Ok(k),
    }
}

/// The first of the largest values, ties taken into account.
fn best(values: &[f64]) -> usize {
    let mut best = 0;
    for (place, &value) in values.iter().enumerate() {
        if value > values[best] + TIE {
            best = place;
        }
    }
    best
}

/// The K that Algorithm 1 prefers.
fn greedy_k(objective: &Objective, counts: &RankCounts) -> usize {
    let tried = Method::Greedy.cut(objective, Method::Greedy.range(counts));
    let values: Vec<f64> = tried.iter().map(|ends| objective.value(ends)).collect();
    tried[best(&values)].len()
}

/// The authors' program compares products, not Eq. 5.
fn author_choice(counts: &RankCounts, tried: &[Vec<usize>]) -> Result<Option<usize>, ClassesError> {
    let scores: Result<Vec<f64>, ClassesError> = tried
        .par_iter()
        .map(|ends| Ok(author_score(counts, &FrequencyClasses::new(ends.clone())?)))
        .collect();
    Ok(Some(best(&scores?)).filter(|_| !tried.is_empty()))
}
