//! The metrics beyond the paper's seven, in collapsed tables.

use super::{Block, NamedTable, Section};
use crate::metrics_table::{further_definitions, further_table};
use crate::results::{Results, ScoreSet};

/// The further metrics of each set of scores that has any.
pub(super) fn section(results: &Results) -> Option<Section> {
    let block = |(number, set): (usize, &ScoreSet)| {
        let table = further_table(&set.records)?;
        let name = if number == 0 { "further".into() } else { format!("further-{}", number + 1) };
        let caption = format!("Further metrics, {}", set.decoding);
        Some(Block::Folded(NamedTable { name, caption, table }))
    };
    let mut blocks: Vec<Block> = results.scores.iter().enumerate().filter_map(block).collect();
    if blocks.is_empty() {
        return None;
    }
    let records: Vec<_> = results.scores.iter().flat_map(|set| set.records.clone()).collect();
    let definitions = further_definitions(&records).into_iter();
    blocks.push(Block::Notes {
        summary: "Definitions of the further metrics".to_owned(),
        lines: definitions.map(|(name, line)| format!("{name}: {line}")).collect(),
    });
    let text = "These metrics are not in the paper and do not count in the matches. The value \
                closest to human text is in bold.";
    let (id, title) = ("further", "Further metrics".to_owned());
    Some(Section { id, title, text: vec![text.to_owned()], blocks })
}

#[cfg(test)]
mod tests {
    use f2_metrics::{Further, Metrics};

    use super::*;
    use crate::results::Decoding;
    use crate::{Report, ResultRecord};

    #[test]
    fn they_are_folded_away_and_written_as_files() {
        let mut metrics = Metrics { kld: Some(1.0), ..Metrics::default() };
        let mut results = Results::new("t");
        let record = |metrics: &Metrics| ResultRecord {
            name: "MLE".to_owned(),
            metrics: metrics.clone(),
            ..ResultRecord::default()
        };
        results.scores = vec![ScoreSet::new(Decoding::Greedy, vec![record(&metrics)])];
        assert!(section(&results).is_none());
        metrics.further.set(Further::RepN, 2, Some(0.125));
        results.scores = vec![ScoreSet::new(Decoding::Greedy, vec![record(&metrics)])];
        let report = Report::new(&results);
        let table = report.tables().find(|named| named.name == "further").unwrap();
        assert!(table.table.to_csv().ends_with("MLE,12.5,,\n"), "{}", table.table.to_csv());
        assert!(report.to_html().contains("<details><summary>Further metrics, greedy"));
    }
}
