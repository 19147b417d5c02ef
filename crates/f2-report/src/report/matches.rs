use super::{Block, Section};
use crate::comparison::{COLUMNS, Comparison};
use crate::paper;
use crate::results::{Decoding, Results};
use crate::table::{Align, Table};

/// Who wins against whom, and the ranking: over the greedy scores, as in the paper, or the main
/// ones where there are none.
pub(super) fn section(results: &Results) -> Option<Section> {
    let greedy = results.scores_of(Decoding::Greedy);
    let set = greedy.or_else(|| results.scores.first())?;
    let comparison = Comparison::new(&set.records).ok()?;
    let rule = format!(
        "A point for each metric: lower PPL and KLD, higher MS-Jaccard-2; Self-BLEU-2, Distinct-3, \
         Rep and Uniq closer to human ({}).",
        set.decoding
    );
    let columns = format!("In the tables {}.", COLUMNS.join("; "));
    let text = vec![rule, columns];
    let mut blocks = vec![
        Block::table("pairwise", "Every model against every other", comparison.pairwise_table()),
        Block::table("ranking", "Ranking by matches won and lost", comparison.ranking_table()),
    ];
    if let Some(set) = results.paper.filter(|_| greedy.is_some()) {
        let mut pairwise =
            Table::new([("winner", Align::Left), ("loser", Align::Left), ("points", Align::Right)]);
        for (winner, loser, won, lost) in set.pairwise() {
            pairwise.row([winner.into(), loser.into(), format!("{won}-{lost}").into()]);
        }
        let caption = format!("In the paper: {}, greedy", set.title());
        blocks.push(Block::table("pairwise-paper", caption, pairwise));
        blocks.push(Block::table("ranking-paper", "In the paper: over both sets", ranking()));
    }
    let remarks = comparison.remarks();
    if !remarks.is_empty() {
        blocks.push(Block::Notes { summary: "Close matches".to_owned(), lines: remarks });
    }
    Some(Section { id: "matches", title: "Pair by pair".to_owned(), text, blocks })
}

fn ranking() -> Table {
    let columns = [("place", Align::Right), ("model", Align::Left), ("matches", Align::Right)];
    let mut table = Table::new(columns);
    for (place, model, won, lost) in paper::ranking() {
        table.row([place.to_string().into(), model.into(), format!("{won}-{lost}").into()]);
    }
    table
}
