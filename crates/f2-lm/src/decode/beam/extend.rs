//! The candidate extensions of every hypothesis.

use f2_engine::{Classes, Device};
use rayon::prelude::*;

use super::super::candidates::{Candidates, Run, blocked};
use super::super::contrast::Amateur;
use super::super::sampler::{chosen_runs, least_rows, open_classes};
use super::super::scores::Scores;
use super::super::{Strategy, Token};
use crate::Error;

/// A token that extends a hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    pub(super) token: Token,
    /// Its log-probability after penalties, or its score against the amateur.
    pub(super) score: f64,
}

/// The best extensions of every hypothesis, best first: at most `count` tokens, from at most
/// `most_classes` classes.
pub(super) fn extensions<D: Device>(
    scores: &mut Scores<'_, D>,
    amateur: Option<&Amateur<'_, D>>,
    strategy: &Strategy,
    [most_classes, count]: [usize; 2],
    hidden: &D::Activations,
    histories: &[&[u32]],
) -> Result<Vec<Vec<Extension>>, Error> {
    let decoder = &scores.model.decoder;
    let found = match (strategy.class_draw(&decoder.head), &decoder.head.classes) {
        (Some(_), Some(classes)) => {
            let counts = [most_classes, count];
            decoupled(scores, amateur, classes, strategy, counts, hidden, histories)?
        }
        _ => joint(scores, amateur, strategy, count, hidden, histories)?,
    };
    if found.iter().any(Vec::is_empty) { Err(Error::NoProbabilities) } else { Ok(found) }
}

fn joint<D: Device>(
    scores: &mut Scores<'_, D>,
    amateur: Option<&Amateur<'_, D>>,
    strategy: &Strategy,
    count: usize,
    hidden: &D::Activations,
    histories: &[&[u32]],
) -> Result<Vec<Vec<Extension>>, Error> {
    let decoder = &scores.model.decoder;
    let classes = decoder.head.classes.as_ref();
    let class_logs = match classes {
        Some(_) => scores.classes(histories.len(), hidden)?,
        None => Vec::new(),
    };
    let posterior = scores.posterior(histories.len(), hidden)?;
    let vocabulary = decoder.shape.vocabulary;
    let contexts = histories.par_iter().zip(amateur_rows(amateur, histories.len()));
    let rows = posterior.par_chunks_mut(vocabulary).zip(contexts).enumerate();
    rows.with_min_len(least_rows(vocabulary))
        .map(|(row, (logs, (history, amateur)))| {
            let run = Run { first: 0, class: 0.0, logs };
            best(vec![run], amateur, strategy, history, count, |id| {
                classes.map(|classes| class_of(classes, id, row, &class_logs))
            })
        })
        .collect()
}

/// Extends every hypothesis by the best tokens of its `most_classes` likeliest classes.
fn decoupled<D: Device>(
    scores: &mut Scores<'_, D>,
    amateur: Option<&Amateur<'_, D>>,
    classes: &Classes,
    strategy: &Strategy,
    [most_classes, count]: [usize; 2],
    hidden: &D::Activations,
    histories: &[&[u32]],
) -> Result<Vec<Vec<Extension>>, Error> {
    let class_logs = scores.classes(histories.len(), hidden)?;
    let plans: Vec<Vec<u32>> = histories
        .iter()
        .zip(class_logs.chunks(classes.count()))
        .map(|(history, logs)| {
            let blocked = blocked(history, strategy.block_ngrams);
            likeliest(&open_classes(classes, logs, &blocked), most_classes)
        })
        .collect();
    let rows = chosen_runs(scores, classes, hidden, &class_logs, &plans)?;
    let contexts = histories.par_iter().zip(amateur_rows(amateur, histories.len()));
    let rows = rows.into_par_iter().zip(contexts).enumerate();
    rows.map(|(row, (runs, (history, amateur)))| {
        let class = |id| Some(class_of(classes, id, row, &class_logs));
        best(runs, amateur, strategy, history, count, class)
    })
    .collect()
}

/// The amateur's log-probabilities for every row, if there is an amateur.
fn amateur_rows<'a, D: Device>(
    amateur: Option<&'a Amateur<'_, D>>,
    rows: usize,
) -> Vec<Option<&'a [f32]>> {
    (0..rows).map(|row| amateur.map(|amateur| amateur.after(row))).collect()
}

fn likeliest(logs: &[f32], count: usize) -> Vec<u32> {
    let possible = |class: &u32| logs[*class as usize] > f32::NEG_INFINITY;
    let mut classes: Vec<u32> = (0..logs.len() as u32).filter(possible).collect();
    classes.sort_by(|left, right| logs[*right as usize].total_cmp(&logs[*left as usize]));
    classes.truncate(count);
    classes
}

fn class_of(classes: &Classes, id: u32, row: usize, class_logs: &[f32]) -> (u32, f32) {
    let class = classes.class_of(id);
    (class as u32, class_logs[row * classes.count() + class])
}

fn best(
    runs: Vec<Run<'_>>,
    amateur: Option<&[f32]>,
    strategy: &Strategy,
    history: &[u32],
    count: usize,
    class: impl Fn(u32) -> Option<(u32, f32)>,
) -> Result<Vec<Extension>, Error> {
    let blocked = blocked(history, strategy.block_ngrams);
    let mut candidates = Candidates::new(runs, strategy, history, &blocked);
    if let (Some(contrast), Some(amateur)) = (&strategy.contrast, amateur) {
        candidates = candidates.contrasted(contrast, amateur)?;
    }
    let best = candidates.best(count).into_iter();
    let extension = |(id, score)| {
        let log_probability = candidates.log_probability(id);
        let token = Token { id, log_probability, class: class(id) };
        Extension { token, score: f64::from(score) }
    };
    Ok(best.map(extension).collect())
}
