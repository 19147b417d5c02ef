//! Pairwise matches of the models, and the ranking.

use super::study::{Study, label};
use super::{Block, Section};
use crate::comparison::Comparison;
use crate::paper;
use crate::record::ResultRecord;
use crate::results::{Decoding, Results, ScoreSet};
use crate::table::{Align, Table};

/// The matches of all pairs of models, and the ranking over all corpora: by the greedy scores, as
/// in the paper, or by the main ones if there are none.
pub(super) fn section(study: &Study<'_>) -> Option<Section> {
    let mut section = study.section(|results| of_corpus(results, study.is_single()))?;
    if !study.is_single() {
        let title = "Over all corpora".to_owned();
        section.blocks.push(Block::Heading { title, text: Vec::new() });
        section.blocks.extend(over_all(study));
    }
    if study.corpora.iter().any(|results| has_paper(results)) {
        section.blocks.push(Block::table(
            "ranking-paper",
            "In the paper: over both sets",
            ranking(),
        ));
    }
    Some(section)
}

/// The scores that are compared: the greedy ones if there are any, otherwise the main ones.
fn compared(results: &Results) -> Option<&ScoreSet> {
    results.scores_of(Decoding::Greedy).or_else(|| results.scores.first())
}

fn has_paper(results: &Results) -> bool {
    results.paper.is_some() && results.scores_of(Decoding::Greedy).is_some()
}

fn of_corpus(results: &Results, alone: bool) -> Option<Section> {
    let set = compared(results)?;
    let comparison = Comparison::new(&set.records).ok()?;
    let rule = format!(
        "A point for each metric: lower PPL and KLD, higher MS-Jaccard-2; Self-BLEU-2, Distinct-3, \
         Rep and Uniq closer to human ({}).",
        set.decoding
    );
    let columns: Vec<&str> = comparison.columns().collect();
    let columns = format!("Columns: {}.", columns.join("; "));
    let pairwise = comparison.pairwise_table();
    let mut blocks = vec![Block::table("pairwise", "Every model against every other", pairwise)];
    if alone {
        let ranking = comparison.ranking_table();
        blocks.push(Block::table("ranking", "Ranking by matches won and lost", ranking));
    }
    if let Some(set) = results.paper.filter(|_| has_paper(results)) {
        let mut pairwise =
            Table::new([("winner", Align::Left), ("loser", Align::Left), ("points", Align::Right)]);
        for (winner, loser, won, lost) in set.pairwise() {
            pairwise.row([winner.into(), loser.into(), format!("{won}-{lost}").into()]);
        }
        let caption = format!("In the paper: {}, greedy", set.title());
        blocks.push(Block::table("pairwise-paper", caption, pairwise));
    }
    let remarks = comparison.remarks();
    if !remarks.is_empty() {
        blocks.push(Block::Notes { summary: "Close matches".to_owned(), lines: remarks });
    }
    let title = "Pair by pair".to_owned();
    Some(Section { id: "matches", title, text: vec![rule, columns], blocks })
}

/// The ranking over the matches of all corpora.
fn over_all(study: &Study<'_>) -> Option<Block> {
    let records = study.corpora.iter().flat_map(|results| {
        let set = compared(results).map_or(&[][..], |set| set.records.as_slice());
        let named =
            |record: &ResultRecord| ResultRecord { set: Some(label(results)), ..record.clone() };
        set.iter().map(named).collect::<Vec<_>>()
    });
    let comparison = Comparison::new(&records.collect::<Vec<_>>()).ok()?;
    let caption = "Ranking by matches won and lost over all corpora";
    Some(Block::table("ranking", caption, comparison.ranking_table()))
}

fn ranking() -> Table {
    let columns = [("place", Align::Right), ("model", Align::Left), ("matches", Align::Right)];
    let mut table = Table::new(columns);
    for (place, model, won, lost) in paper::ranking() {
        table.row([place.to_string().into(), model.into(), format!("{won}-{lost}").into()]);
    }
    table
}
