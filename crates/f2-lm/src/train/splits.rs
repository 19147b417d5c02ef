//! The splits of a run, cut into batches and windows.

use f2_corpus::Split;

use crate::Error;
use crate::batch::{TokenSource, TrainingBatches};
use crate::config::{ObjectiveName, TrainConfig};
use crate::perplexity::{Contexts, ScoredWindows, SlidingWindows};
use crate::schedule::Budget;

/// The splits a run reads.
pub struct Splits<'a> {
    /// The training split.
    pub train: &'a dyn TokenSource,
    /// The validation split; may be empty.
    pub valid: &'a dyn TokenSource,
    /// The token that ends a document, if there is one.
    pub end_of_text: Option<u32>,
}

/// Refuses splits that are too short for the configured windows. Returns the batches of the
/// training split.
pub fn check_splits(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<TrainingBatches, Error> {
    cut(config, train, valid).map(|(batches, _)| batches)
}

/// Refuses what [`check_splits`] refuses, and runs without a limit: everything that is checked
/// before the run's folder is created.
pub fn check_run(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<(), Error> {
    cut(config, train, valid).and_then(|(batches, _)| limited(config, &batches)).map(drop)
}

pub(super) fn limited(config: &TrainConfig, batches: &TrainingBatches) -> Result<Budget, Error> {
    let budget = Budget::new(&config.budget, batches);
    if budget.is_endless() { Err(Error::Endless) } else { Ok(budget) }
}

/// The batches of the training split, and the windows of the validation split unless it is empty.
pub(super) fn cut(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<(TrainingBatches, Option<ScoredWindows>), Error> {
    let objective = config.objective.name;
    if train.separator().is_some() && objective == ObjectiveName::UnlikelihoodSequence {
        return Err(Error::ObjectiveOfPairs { objective: objective.as_str() });
    }
    let batches = TrainingBatches::new(train, &config.batch, config.seed)?;
    if valid.is_empty() {
        if config.evaluation.patience > 0 {
            return Err(Error::NothingToWatch);
        }
        return Ok((batches, None));
    }
    let (sequence, max_tokens) = (config.batch.sequence, config.evaluation.max_tokens);
    if valid.len() < 2 {
        let tokens = valid.len();
        let split = Split::Valid.name();
        return Err(Error::SplitTooShort { split, tokens, needed: 2, sequence });
    }
    let sliding = SlidingWindows::new(None, None, sequence)?;
    let contexts = Contexts::of_text(valid, &config.batch);
    let evaluation = ScoredWindows::new(valid, sliding, contexts, max_tokens)?;
    Ok((batches, Some(evaluation)))
}
