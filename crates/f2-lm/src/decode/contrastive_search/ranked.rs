//! The likeliest next tokens: of the whole vocabulary, or of the class that is drawn first.

use f2_engine::{Classes, Device};
use rayon::prelude::*;

use super::super::candidates::{Candidates, Run, blocked};
use super::super::sampler::{Wanted, chosen_runs, class_plans, least_rows};
use super::super::scores::Scores;
use super::super::truncation::kth_largest;
use super::super::{ClassDraw, Strategy, Token};
use crate::Error;

/// The `k` likeliest next tokens of every row, best first, and their probabilities after penalties,
/// within the class if one is drawn.
pub(super) fn ranked<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    k: usize,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Vec<(Token, f64)>>, Error> {
    let decoder = &scores.model.decoder;
    let found = match (strategy.class_draw(&decoder.head), &decoder.head.classes) {
        (Some(draw), Some(classes)) => {
            decoupled(scores, strategy, (classes, draw), k, hidden, wanted)?
        }
        _ => joint(scores, strategy, k, hidden, wanted)?,
    };
    if found.iter().any(Vec::is_empty) { Err(Error::NoProbabilities) } else { Ok(found) }
}

fn joint<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    k: usize,
    hidden: &D::Activations,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Vec<(Token, f64)>>, Error> {
    let decoder = &scores.model.decoder;
    let classes = match &decoder.head.classes {
        Some(classes) => Some((classes, scores.classes(wanted.len(), hidden)?)),
        None => None,
    };
    let posterior = scores.posterior(wanted.len(), hidden)?;
    let vocabulary = decoder.shape.vocabulary;
    let rows = posterior.par_chunks_mut(vocabulary).zip(wanted).enumerate();
    let found = rows.with_min_len(least_rows(vocabulary)).map(|(row, (logs, wanted))| {
        let run = Run { first: 0, class: 0.0, logs };
        let class = |id| classes.as_ref().map(|(classes, logs)| class_of(classes, logs, row, id));
        best(vec![run], strategy, wanted.history, k, class)
    });
    Ok(found.collect())
}

fn decoupled<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    (classes, draw): (&Classes, &ClassDraw),
    k: usize,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Vec<(Token, f64)>>, Error> {
    let class_logs = scores.classes(wanted.len(), hidden)?;
    let plans = class_plans(classes, strategy, draw, &class_logs, wanted)?;
    let rows = chosen_runs(scores, classes, hidden, &class_logs, &plans)?;
    let rows = rows.into_par_iter().zip(wanted).enumerate();
    let found = rows.map(|(row, (runs, wanted))| {
        let class = |id| Some(class_of(classes, &class_logs, row, id));
        best(runs, strategy, wanted.history, k, class)
    });
    Ok(found.collect())
}

fn class_of(classes: &Classes, class_logs: &[f32], row: usize, id: u32) -> (u32, f32) {
    let class = classes.class_of(id);
    (class as u32, class_logs[row * classes.count() + class])
}

fn best(
    runs: Vec<Run<'_>>,
    strategy: &Strategy,
    history: &[u32],
    k: usize,
    class: impl Fn(u32) -> Option<(u32, f32)>,
) -> Vec<(Token, f64)> {
    let blocked = blocked(history, strategy.block_ngrams);
    let candidates = Candidates::new(runs, strategy, history, &blocked);
    let distribution = candidates.distribution(strategy, None);
    let entries = distribution.entries();
    let threshold = kth_largest(entries.iter().map(|(_, probability)| *probability), k);
    let mut best: Vec<(u32, f64)> =
        entries.iter().copied().filter(|(_, probability)| *probability >= threshold).collect();
    best.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    let token = |id: u32| {
        let log_probability = candidates.log_probability(id);
        Token { id, log_probability, class: class(id) }
    };
    best.into_iter().take(k).map(|(id, probability)| (token(id), probability)).collect()
}
