//! The tokens every hypothesis may be extended by.

use f2_engine::{Classes, Device};

use super::super::candidates::{Candidates, Run, blocked};
use super::super::sampler::{chosen_runs, open_classes};
use super::super::scores::Scores;
use super::super::{BeamSearch, Strategy, Token};
use crate::Error;

/// A token that extends a hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    pub(super) token: Token,
    /// Its log-probability as the strategy sees it.
    pub(super) score: f64,
}

/// The best extensions of every hypothesis, best first: enough to pass over the tokens of other
/// groups and the one that ends a text.
pub(super) fn extensions<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    search: &BeamSearch,
    hidden: &D::Activations,
    histories: &[&[u32]],
) -> Result<Vec<Vec<Extension>>, Error> {
    let group = search.width / search.groups;
    let count = group + search.width;
    let decoder = &scores.model.decoder;
    let found = match (strategy.class_draw(&decoder.head), &decoder.head.classes) {
        (Some(_), Some(classes)) => {
            decoupled(scores, classes, strategy, [search.width, count], hidden, histories)?
        }
        _ => joint(scores, strategy, count, hidden, histories)?,
    };
    if found.iter().any(Vec::is_empty) { Err(Error::NoProbabilities) } else { Ok(found) }
}

fn joint<D: Device>(
    scores: &mut Scores<'_, D>,
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
    let rows = posterior.chunks_mut(decoder.shape.vocabulary).zip(histories);
    Ok(rows
        .enumerate()
        .map(|(row, (logs, history))| {
            let run = Run { first: 0, class: 0.0, logs };
            best(vec![run], strategy, history, count, |id| {
                classes.map(|classes| class_of(classes, id, row, &class_logs))
            })
        })
        .collect())
}

/// A hypothesis is extended by its best classes, as many as the beam is wide, and the best tokens of
/// each.
fn decoupled<D: Device>(
    scores: &mut Scores<'_, D>,
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
    let rows = rows.into_iter().zip(histories).enumerate();
    let extend = |(row, (runs, history)): (usize, (Vec<Run<'_>>, &&[u32]))| {
        let class = |id| Some(class_of(classes, id, row, &class_logs));
        best(runs, strategy, history, count, class)
    };
    Ok(rows.map(extend).collect())
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
    strategy: &Strategy,
    history: &[u32],
    count: usize,
    class: impl Fn(u32) -> Option<(u32, f32)>,
) -> Vec<Extension> {
    let blocked = blocked(history, strategy.block_ngrams);
    let candidates = Candidates::new(runs, strategy, history, &blocked);
    let best = candidates.best(count).into_iter();
    best.map(|(id, score)| {
        let log_probability = candidates.log_probability(id);
        let token = Token { id, log_probability, class: class(id) };
        Extension { token, score: f64::from(score) }
    })
    .collect()
}
