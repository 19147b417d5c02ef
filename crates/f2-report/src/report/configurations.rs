//! The hyperparameters and settings of the runs.

use std::collections::BTreeSet;

use super::{Block, Section};
use crate::results::{Decoding, Results, RunResult};
use crate::table::{Align, Table};

/// The paper's names of hyperparameters, with the names of the settings.
const SETTINGS: [(&str, &str); 14] = [
    ("layers", "model.layers"),
    ("width", "model.width"),
    ("feed-forward width", "model.feed_forward"),
    ("heads", "model.heads"),
    ("dropout", "model.dropout"),
    ("vocabulary", "model.vocabulary"),
    ("sequence length", "batch.sequence"),
    ("batch", "batch.size"),
    ("learning rate", "optimiser.learning_rate"),
    ("gradient clipping", "optimiser.clip"),
    ("weight decay", "optimiser.weight_decay"),
    ("beta1", "optimiser.beta1"),
    ("beta2", "optimiser.beta2"),
    ("epsilon", "optimiser.epsilon"),
];

/// The paper's hyperparameters and ours, and all settings of the runs.
pub(super) fn section(results: &Results) -> Option<Section> {
    let runs = &results.runs;
    let mut blocks: Vec<Block> = hyperparameters(results).into_iter().collect();
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
    let (same, different): (Vec<&String>, Vec<&String>) = keys
        .into_iter()
        .partition(|key| runs.iter().all(|run| value(run, key) == value(&runs[0], key)));
    if !different.is_empty() {
        let caption = "Settings in which the runs differ";
        blocks.push(Block::table("settings-that-differ", caption, differing(runs, &different)));
    }
    if let Some(run) = runs.first().filter(|_| !same.is_empty()) {
        blocks.push(Block::table("settings", "Settings all runs share", common(run, &same)));
    }
    let title = "Settings".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "settings", title, text: Vec::new(), blocks })
}

/// The paper's tables of hyperparameters, with our values.
fn hyperparameters(results: &Results) -> Option<Block> {
    let set = results.paper?;
    let ours: Vec<Option<f64>> =
        set.hyperparameters().iter().map(|(name, _)| own(results, name)).collect();
    if ours.iter().all(Option::is_none) {
        return None;
    }
    let mut table = Table::new([
        ("hyperparameter".to_owned(), Align::Left),
        ("ours".to_owned(), Align::Right),
        (format!("paper, {}", set.title()), Align::Right),
    ]);
    for ((name, printed), ours) in set.hyperparameters().into_iter().zip(ours) {
        let ours = ours.map_or_else(|| "–".to_owned(), number);
        table.row([name, ours, number(printed)].map(Into::into));
    }
    let caption = "The paper's tables of hyperparameters, and what was used here";
    Some(Block::table("hyperparameters", caption, table))
}

/// Our value of a hyperparameter: the recorded one, or one derived from the runs and scores.
fn own(results: &Results, name: &str) -> Option<f64> {
    if let Some(recorded) = results.hyperparameters.get(name) {
        return Some(*recorded);
    }
    let scratch = results.runs.iter().find(|run| run.starts_from().is_none());
    let tuned = results.runs.iter().find(|run| run.starts_from().is_some());
    let setting = |run: Option<&RunResult>, key: &str| run?.setting(key)?.parse::<f64>().ok();
    match name {
        "parameters (M)" => scratch.map(|run| run.parameters as f64 / 1e6),
        // The decoder has no attention dropout.
        "attention dropout" => scratch.map(|_| 0.0),
        "fine-tuning learning rate" => setting(tuned, "optimiser.learning_rate"),
        "fine-tuning steps" => tuned.map(|run| run.steps as f64),
        "top-k" => match results.scores.first()?.decoding {
            Decoding::TopK { k } => Some(k as f64),
            _ => None,
        },
        _ => {
            let (_, key) = SETTINGS.iter().find(|(paper, _)| *paper == name)?;
            setting(scratch, key)
        }
    }
}

/// Formats a value as in the paper: small numbers in scientific notation, millions of parameters
/// with two decimals.
fn number(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 1e-3 => format!("{value:e}"),
        large if large > 10.0 => ((value * 100.0).round() / 100.0).to_string(),
        _ => value.to_string(),
    }
}

fn value<'a>(run: &'a RunResult, key: &str) -> &'a str {
    run.setting(key).unwrap_or("–")
}

fn differing(runs: &[RunResult], keys: &[&String]) -> Table {
    let names = runs.iter().map(|run| (run.name.clone(), Align::Right));
    let mut table = Table::new(std::iter::once(("setting".to_owned(), Align::Left)).chain(names));
    for key in keys {
        let values = runs.iter().map(|run| value(run, key).into());
        table.row(std::iter::once((*key).clone().into()).chain(values));
    }
    table
}

fn common(run: &RunResult, keys: &[&String]) -> Table {
    let mut table = Table::new([("setting", Align::Left), ("value", Align::Right)]);
    for key in keys {
        table.row([(*key).clone(), value(run, key).to_owned()].map(Into::into));
    }
    table
}
