use std::collections::BTreeSet;

use super::{Block, Section};
use crate::paper::PaperSet;
use crate::results::{Results, RunResult};
use crate::table::{Align, Table};

/// The settings the paper's table of hyperparameters has, and what it calls them.
const IN_THE_PAPER: [(&str, &str); 13] = [
    ("model.layers", "layers"),
    ("model.width", "width"),
    ("model.feed_forward", "feed-forward width"),
    ("model.heads", "heads"),
    ("model.dropout", "dropout"),
    ("model.vocabulary", "vocabulary"),
    ("batch.sequence", "sequence length"),
    ("batch.size", "batch"),
    ("optimiser.learning_rate", "learning rate"),
    ("optimiser.clip", "gradient clipping"),
    ("optimiser.weight_decay", "weight decay"),
    ("optimiser.beta1", "beta1"),
    ("optimiser.beta2", "beta2"),
];

/// What the runs have in common, and where they differ.
pub(super) fn section(results: &Results) -> Option<Section> {
    let runs = &results.runs;
    if runs.is_empty() {
        return None;
    }
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
    let (same, different): (Vec<&String>, Vec<&String>) = keys
        .into_iter()
        .partition(|key| runs.iter().all(|run| value(run, key) == value(&runs[0], key)));
    let mut blocks = Vec::new();
    if !different.is_empty() {
        let caption = "Settings in which the runs differ";
        blocks.push(Block::table("settings-that-differ", caption, differing(runs, &different)));
    }
    let caption = "Settings all runs share";
    blocks.push(Block::table("settings", caption, common(&runs[0], &same, results.paper)));
    Some(Section { id: "settings", title: "Settings".to_owned(), text: Vec::new(), blocks })
}

fn value<'a>(run: &'a RunResult, key: &str) -> &'a str {
    run.settings.get(key).map_or("–", String::as_str)
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

fn common(run: &RunResult, keys: &[&String], paper: Option<PaperSet>) -> Table {
    let mut columns = vec![("setting".to_owned(), Align::Left), ("value".to_owned(), Align::Right)];
    columns.extend(paper.map(|set| (format!("paper, {}", set.title()), Align::Right)));
    let mut table = Table::new(columns);
    for key in keys {
        let printed = paper.map(|set| {
            let name = IN_THE_PAPER.iter().find(|(ours, _)| ours == key).map(|(_, name)| *name);
            let number = name.and_then(|name| set.hyperparameter(name));
            number.map_or_else(|| "–".to_owned(), |number| number.to_string())
        });
        let cells = [(*key).clone(), value(run, key).to_owned()];
        table.row(cells.into_iter().chain(printed).map(Into::into));
    }
    table
}
