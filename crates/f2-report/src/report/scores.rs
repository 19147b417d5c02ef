//! The tables of scores.

use f2_metrics::Convention;

use super::{Block, Section};
use crate::metrics_table::{MetricTable, definitions};
use crate::record::ResultRecord;
use crate::results::{Decoding, Results, ScoreSet};

/// The main table: the first set of scores.
pub(super) fn main(results: &Results) -> Option<Section> {
    let set = results.scores.first()?;
    let notes = definitions(convention(set)).map(|(name, line)| format!("{name}: {line}"));
    Some(Section {
        id: "scores",
        title: "Scores".to_owned(),
        text: vec![format!(
            "Each model continues the same prefixes ({}). The value closest to human text is in \
             bold{}.",
            set.decoding,
            beside(results)
        )],
        blocks: vec![
            Block::table("scores", caption(set), table(results, set)),
            Block::Notes {
                summary: "Definitions of the metrics".to_owned(),
                lines: notes.chain(interval_note(set)).collect(),
            },
        ],
    })
}

/// Greedy decoding.
pub(super) fn greedy(results: &Results) -> Option<Section> {
    let others = results.scores.get(1..)?;
    let set = others.iter().find(|set| set.decoding == Decoding::Greedy)?;
    Some(Section {
        id: "greedy",
        title: "Greedy decoding".to_owned(),
        text: vec![format!("The same models and prefixes, decoded greedily{}.", beside(results))],
        blocks: vec![Block::table("scores-greedy", caption(set), table(results, set))],
    })
}

/// Top-k sampling with other values of k.
pub(super) fn others(results: &Results) -> Option<Section> {
    let block = |set: &ScoreSet| {
        let Decoding::TopK { k } = set.decoding else { return None };
        Some(Block::table(format!("scores-top-{k}"), caption(set), table(results, set)))
    };
    let blocks: Vec<Block> = results.scores.iter().skip(1).filter_map(block).collect();
    (!blocks.is_empty()).then(|| Section {
        id: "decoding",
        title: "Top-k with other k".to_owned(),
        text: vec![format!(
            "The same models and prefixes, decoded with other values of k{}.",
            beside(results)
        )],
        blocks,
    })
}

fn beside(results: &Results) -> String {
    results.paper.map_or_else(String::new, |set| {
        format!("; the numbers the paper prints for {} are in grey", set.title())
    })
}

fn table(results: &Results, set: &ScoreSet) -> crate::Table {
    MetricTable::new(&set.records).beside(&paper_rows(results, set.decoding)).build()
}

/// The paper's rows for this decoding.
pub(super) fn paper_rows(results: &Results, decoding: Decoding) -> Vec<ResultRecord> {
    match (results.paper, decoding) {
        (Some(paper), Decoding::Greedy) => paper.greedy(),
        (Some(paper), Decoding::TopK { k }) => paper.top_k(k),
        _ => Vec::new(),
    }
}

fn caption(set: &ScoreSet) -> String {
    let texts = set.records.iter().map(|record| record.texts).max().unwrap_or(0);
    let ppl = set.records.iter().any(|record| record.metrics.ppl.is_some());
    let ppl = if ppl { "; PPL of the test split" } else { "" };
    format!("{}; {texts} texts for each model{ppl}", set.decoding)
}

/// The convention of the scores; the paper's if they have no valid one.
fn convention(set: &ScoreSet) -> Convention {
    set.records.first().and_then(|record| record.convention.parse().ok()).unwrap_or_default()
}

fn interval_note(set: &ScoreSet) -> Option<String> {
    let intervals = set.records.iter().find_map(|record| record.intervals.as_ref())?;
    Some(format!(
        "±: half of a {:.0} % interval, texts drawn {} times; of Rep a Wilson interval, and ≤ its \
         upper end where no text loops",
        100.0 * intervals.level,
        intervals.replicates
    ))
}
