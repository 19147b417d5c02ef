//! Validation of the settings: ranges, and values that must fit each other.

use super::{ObjectiveName, TrainConfig};

/// The most tokens one step may see.
const MOST_TOKENS: usize = 1 << 26;

impl TrainConfig {
    /// The first invalid value, with its key and the reason.
    pub(crate) fn violation(&self) -> Option<String> {
        check(self).err().map(|Violation { key, reason }| format!("{key}: {reason}"))
    }
}

/// A key with an invalid value, and the reason.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) key: &'static str,
    pub(super) reason: String,
}

pub(super) fn check(config: &TrainConfig) -> Result<(), Violation> {
    check_model(config)?;
    check_batch(config)?;
    check_optimiser(config)?;
    check_budget(config)?;
    check_unlikelihood(config)?;
    let fraction = config.schedule.final_fraction;
    require("schedule.final_fraction", (0.0..=1.0).contains(&fraction), || {
        format!("{fraction} is not between 0 and 1")
    })?;
    let evaluation = &config.evaluation;
    require("evaluation.patience", evaluation.patience == 0 || evaluation.every_steps > 0, || {
        "it counts evaluations, and `evaluation.every_steps` = 0 asks for none".to_owned()
    })?;
    let minutes = config.checkpoint.every_minutes;
    require("checkpoint.every_minutes", minutes >= 0.0, || format!("{minutes} is negative"))
}

fn check_model(config: &TrainConfig) -> Result<(), Violation> {
    let model = &config.model;
    // The upper bounds keep every product of sizes within 64 bits.
    within("model.layers", model.layers, 1 << 12)?;
    within("model.width", model.width, 1 << 16)?;
    within("model.heads", model.heads, 1 << 16)?;
    within("model.feed_forward", model.feed_forward, 1 << 18)?;
    require("model.heads", model.width.is_multiple_of(model.heads), || {
        format!("{} heads do not divide a width of {}", model.heads, model.width)
    })?;
    require("model.dropout", (0.0..1.0).contains(&model.dropout), || {
        format!("{} is not a probability below 1", model.dropout)
    })?;
    model.vocabulary.map_or(Ok(()), |tokens| within("model.vocabulary", tokens, 1 << 31))
}

fn check_batch(config: &TrainConfig) -> Result<(), Violation> {
    let batch = &config.batch;
    require("batch.sequence", batch.sequence >= 2, || {
        format!("a window of {} leaves nothing to predict", batch.sequence)
    })?;
    within("batch.size", batch.size, MOST_TOKENS)?;
    require("batch.shards", batch.size.is_multiple_of(batch.shards.max(1)), || {
        format!("{} windows cannot be cut into {} equal shards", batch.size, batch.shards)
    })?;
    let rows = batch.shard_size();
    require("batch.micro", rows.is_multiple_of(batch.micro_size()), || {
        format!("{rows} windows cannot be split into parts of {}", batch.micro)
    })?;
    let tokens = batch.size.checked_mul(batch.sequence);
    require("batch.size", tokens.is_some_and(|tokens| tokens <= MOST_TOKENS), || {
        format!("{} windows of {} tokens are too many for one step", batch.size, batch.sequence)
    })
}

fn check_optimiser(config: &TrainConfig) -> Result<(), Violation> {
    let optimiser = &config.optimiser;
    let rate = optimiser.learning_rate;
    require("optimiser.learning_rate", rate.is_finite() && rate >= 0.0, || {
        format!("{rate} is not a number from 0 up")
    })?;
    for (key, beta) in [("optimiser.beta1", optimiser.beta1), ("optimiser.beta2", optimiser.beta2)]
    {
        require(key, (0.0..1.0).contains(&beta), || format!("{beta} is not from 0 to below 1"))?;
    }
    for (key, value) in [
        ("optimiser.epsilon", optimiser.epsilon),
        ("optimiser.weight_decay", optimiser.weight_decay),
        ("optimiser.clip", optimiser.clip),
    ] {
        let usable = value.is_finite() && value >= 0.0;
        require(key, usable, || format!("{value} is not a number from 0 up"))?;
    }
    Ok(())
}

fn check_budget(config: &TrainConfig) -> Result<(), Violation> {
    let budget = &config.budget;
    require("budget.steps", budget.steps != Some(0), || "0 steps train nothing".to_owned())?;
    require("budget.tokens", budget.tokens != Some(0), || "0 tokens train nothing".to_owned())?;
    for (key, limit) in [("budget.epochs", budget.epochs), ("budget.minutes", budget.minutes)] {
        let usable = limit.is_none_or(|limit| limit.is_finite() && limit > 0.0);
        require(key, usable, || "it must be a number above 0".to_owned())?;
    }
    Ok(())
}

fn check_unlikelihood(config: &TrainConfig) -> Result<(), Violation> {
    let unlikelihood = &config.unlikelihood;
    let (alpha, rate) = (unlikelihood.alpha, unlikelihood.sequence_rate);
    require("unlikelihood.alpha", alpha.is_finite() && alpha >= 0.0, || {
        format!("{alpha} is not a number from 0 up")
    })?;
    require("unlikelihood.sequence_rate", (0.0..=1.0).contains(&rate), || {
        format!("{rate} is not between 0 and 1")
    })?;
    let (prefix, continuation) = (unlikelihood.prefix, unlikelihood.continuation);
    within("unlikelihood.prefix", prefix, MOST_TOKENS)?;
    within("unlikelihood.continuation", continuation, MOST_TOKENS)?;
    within("unlikelihood.ngram", unlikelihood.ngram, MOST_TOKENS)?;
    let sequence = config.batch.sequence;
    let used = config.objective.name == ObjectiveName::UnlikelihoodSequence;
    require("unlikelihood.continuation", !used || prefix + continuation <= sequence, || {
        format!(
            "a prefix of {prefix} and a continuation of {continuation} do not fit windows of \
             {sequence} tokens (`batch.sequence`)"
        )
    })
}

fn within(key: &'static str, value: usize, most: usize) -> Result<(), Violation> {
    require(key, (1..=most).contains(&value), || format!("{value} is not from 1 to {most}"))
}

fn require(
    key: &'static str,
    holds: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { key, reason: reason() }) }
}
