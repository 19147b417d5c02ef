use f2_metrics::Convention;

use super::{Block, Section};
use crate::metrics_table::{MetricTable, definitions};
use crate::record::ResultRecord;
use crate::results::{Decoding, Results, ScoreSet};

/// The main table: the first scores.
pub(super) fn main(results: &Results) -> Option<Section> {
    let set = results.scores.first()?;
    let notes = definitions(convention(set)).map(|(name, line)| format!("{name}: {line}"));
    Some(Section {
        id: "scores",
        title: "Scores".to_owned(),
        text: vec![format!(
            "Each model continues the same prefixes ({}). In bold the value closest to human \
             text{}.",
            set.decoding,
            beside(results)
        )],
        blocks: vec![
            Block::table("scores", caption(set), table(results, set)),
            Block::Notes {
                summary: "What the metrics are".to_owned(),
                lines: notes.chain(interval_note(set)).collect(),
            },
        ],
    })
}

/// Greedy and every other k.
pub(super) fn others(results: &Results) -> Option<Section> {
    let usual = |set: &&ScoreSet| matches!(set.decoding, Decoding::Greedy | Decoding::TopK { .. });
    let block = |set: &ScoreSet| {
        Block::table(
            format!("scores-{}", file_name(set.decoding)),
            caption(set),
            table(results, set),
        )
    };
    let blocks: Vec<Block> = results.scores.iter().skip(1).filter(usual).map(block).collect();
    (!blocks.is_empty()).then(|| Section {
        id: "decoding",
        title: "Other ways of decoding".to_owned(),
        text: vec![format!(
            "The same models and prefixes, decoded greedily and among more or fewer tokens{}.",
            beside(results)
        )],
        blocks,
    })
}

fn beside(results: &Results) -> String {
    results.paper.map_or_else(String::new, |set| {
        format!("; in grey what the paper prints for {}", set.title())
    })
}

fn table(results: &Results, set: &ScoreSet) -> crate::Table {
    MetricTable::new(&set.records).beside(&paper_rows(results, set.decoding)).build()
}

/// What the paper prints for this way of decoding.
pub(super) fn paper_rows(results: &Results, decoding: Decoding) -> Vec<ResultRecord> {
    match (results.paper, decoding) {
        (Some(paper), Decoding::Greedy) => paper.greedy(),
        (Some(paper), Decoding::TopK { k }) => paper.top_k(k),
        _ => Vec::new(),
    }
}

fn caption(set: &ScoreSet) -> String {
    let texts = set.records.iter().map(|record| record.texts).max().unwrap_or(0);
    format!("{}; {texts} texts for each model", set.decoding)
}

fn file_name(decoding: Decoding) -> String {
    match decoding {
        Decoding::TopK { k } => format!("top-{k}"),
        _ => "greedy".to_owned(),
    }
}

/// The definitions the scores follow; the paper's where they do not say.
fn convention(set: &ScoreSet) -> Convention {
    set.records.first().and_then(|record| record.convention.parse().ok()).unwrap_or_default()
}

fn interval_note(set: &ScoreSet) -> Option<String> {
    let intervals = set.records.iter().find_map(|record| record.intervals.as_ref())?;
    Some(format!(
        "±: half of a {:.0} % interval, texts drawn {} times",
        100.0 * intervals.level,
        intervals.replicates
    ))
}
