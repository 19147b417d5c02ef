//! Uncertainty of the scores: differences between models, and several trainings.

use super::{Block, Section};
use crate::metrics_table::Column;
use crate::record::ResultRecord;
use crate::results::{Results, ScoreSet};
use crate::table::{Align, Cell, Table};

/// The mark of a difference that is not significant.
const LEVEL: &str = "≈ ";

/// The name of the deviation over trainings, or of half the interval over texts, in
/// machine-readable formats.
const DEVIATION: &str = "±";

/// Differences by paired bootstrap, and means over trainings.
pub(super) fn section(results: &Results) -> Option<Section> {
    let main = results.scores.first()?;
    let (mut text, mut blocks) = (Vec::new(), Vec::new());
    if let Some(table) = differences(&main.records) {
        text.push(format!(
            "Differences between models by paired bootstrap: continuations of the same prefixes \
             against the same references. If the 95 % interval, in parentheses, contains 0, the \
             difference is not significant; {LEVEL}marks these."
        ));
        let caption = format!("Differences between models, {}", main.decoding);
        blocks.push(Block::table("differences", caption, table));
    }
    if let Some(table) = seeds(main) {
        let trainings = main.other_seeds.len() + 1;
        text.push(
            "Scores vary between trainings of the same model, and between texts of the same \
             training. The first is given by the standard deviation over trainings, the second by \
             half the 95 % interval over texts of one training."
                .to_owned(),
        );
        let caption = format!("Mean and deviation over {trainings} trainings, {}", main.decoding);
        blocks.push(Block::table("seeds", caption, table));
    }
    let title = "Uncertainty of the scores".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "certainty", title, text, blocks })
}

/// The differences of all pairs of models with bootstrap intervals.
fn differences(records: &[ResultRecord]) -> Option<Table> {
    let mut columns = Column::of_metrics(records);
    let pairs: Vec<(&ResultRecord, &ResultRecord)> = records
        .iter()
        .enumerate()
        .flat_map(|(place, one)| records[..place].iter().map(move |other| (one, other)))
        .filter(|(one, other)| !one.differences.is_empty() || !other.differences.is_empty())
        .collect();
    // PPL has no interval, as it is not an average over texts.
    columns.retain(|column| {
        pairs.iter().any(|(one, other)| one.difference(other, column.0).is_some())
    });
    if pairs.is_empty() || columns.is_empty() {
        return None;
    }
    let headings = columns.iter().map(|column| (column.heading(), Align::Right));
    let mut table =
        Table::new(std::iter::once(("difference".to_owned(), Align::Left)).chain(headings));
    for (one, other) in pairs {
        let cells = columns.iter().map(|column| {
            let Some((value, interval)) = one.difference(other, column.0) else {
                return Cell::from("–");
            };
            let mark = if interval.holds(0.0) { LEVEL } else { "" };
            let sign = if value > 0.0 { "+" } else { "" };
            // Both ends: an interval need not be symmetric, so the value ± half its width could
            // include 0 although the interval does not.
            let [low, high] = [interval.low, interval.high].map(|end| column.number(end));
            let text = format!("{mark}{sign}{} ({low} to {high})", column.number(value));
            Cell::from(text).with_numbers(column.numbers(Some(value), Some(interval)))
        });
        let name = format!("{} − {}", one.name, other.name);
        table.row(std::iter::once(name.into()).chain(cells));
    }
    Some(table)
}

/// Means and deviations over trainings; below each, half the interval over texts.
fn seeds(set: &ScoreSet) -> Option<Table> {
    if set.other_seeds.is_empty() {
        return None;
    }
    let columns = Column::of_metrics(&set.records);
    let headings = columns.iter().map(|column| (column.heading(), Align::Right));
    let mut table = Table::new(std::iter::once(("model".to_owned(), Align::Left)).chain(headings));
    for record in &set.records {
        let of_name = |records: &[ResultRecord]| {
            records.iter().find(|other| other.name == record.name).cloned()
        };
        let others = set.other_seeds.iter().filter_map(|seed| of_name(&seed.records));
        let trainings: Vec<ResultRecord> = std::iter::once(record.clone()).chain(others).collect();
        let cells = columns.iter().map(|column| {
            let values = trainings.iter().filter_map(|each| each.metrics.get(column.0));
            let values: Vec<f64> = values.collect();
            match (mean(&values), deviation(&values)) {
                (Some(mean), Some(deviation)) => {
                    let [mean, deviation] = [mean, deviation].map(|number| column.number(number));
                    let numbers = [("", mean.clone()), (DEVIATION, deviation.clone())];
                    Cell::from(format!("{mean} ±{deviation}")).with_numbers(numbers)
                }
                (Some(mean), None) => column.number(mean).into(),
                _ => "–".into(),
            }
        });
        table.row(std::iter::once(record.name.clone().into()).chain(cells));
        if record.intervals.is_some() {
            let cells = columns.iter().map(|column| {
                let interval = record.interval(column.0);
                let half = interval.map(|each| column.number((each.high - each.low) / 2.0));
                half.map_or_else(
                    || "–".into(),
                    |half| Cell::from(format!("±{half}")).with_numbers([(DEVIATION, half)]),
                )
            });
            let name = format!("{}, over texts", record.name);
            table.quiet_row(std::iter::once(name.into()).chain(cells));
        }
    }
    Some(table)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample standard deviation.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use f2_metrics::{Interval, Metrics};

    use super::*;
    use crate::record::{DifferenceRecord, IntervalRecord};
    use crate::results::{Decoding, SeedScores};

    fn record(name: &str, kld: f64) -> ResultRecord {
        let metrics = Metrics { kld: Some(kld), ..Metrics::default() };
        ResultRecord { name: name.to_owned(), metrics, ..ResultRecord::default() }
    }

    #[test]
    fn what_is_not_significant_is_marked() {
        let (one, mut two, mut three) = (record("a", 1.0), record("b", 1.5), record("c", 1.01));
        let to = |to: &str, low, high| DifferenceRecord {
            to: to.to_owned(),
            metrics: Metrics { kld: Some(Interval { low, high }), ..Metrics::default() },
        };
        two.differences = vec![to("a", 0.4, 0.6)];
        three.differences = vec![to("a", -0.02, 0.04), to("b", -0.59, -0.39)];
        let lines = "\
| difference | KLD |
| --- | --: |
| b − a | +0.50 (0.40 to 0.60) |
| c − a | ≈ +0.01 (-0.02 to 0.04) |
| c − b | -0.49 (-0.59 to -0.39) |
";
        let records = [one, two, three];
        assert_eq!(differences(&records).unwrap().to_markdown(), lines);
        let turned = records[0].difference(&records[1], columns_kld()).unwrap();
        assert_eq!(turned, (-0.5, Interval { low: -0.6, high: -0.4 }));
        assert_eq!(differences(&records[..1]), None);
    }

    fn columns_kld() -> f2_metrics::Measure {
        f2_metrics::Measure::Metric(f2_metrics::Metric::Kld, 1)
    }

    #[test]
    fn trainings_are_averaged_beside_the_interval_over_texts() {
        let mut first = record("a", 1.0);
        first.intervals = Some(IntervalRecord {
            metrics: Metrics { kld: Some(Interval { low: 0.9, high: 1.3 }), ..Metrics::default() },
            ..IntervalRecord::default()
        });
        let mut set = ScoreSet::new(Decoding::Greedy, vec![first]);
        assert_eq!(seeds(&set), None);
        let other = |seed, kld| SeedScores { seed, records: vec![record("a", kld)] };
        set.other_seeds = vec![other(1, 2.0), other(2, 3.0)];
        let table = seeds(&set).unwrap().to_markdown();
        assert!(table.contains("| a | 2.00 ±1.00 | – | – |"), "{table}");
        assert!(table.contains("| a, over texts | ±0.20 | – | – |"), "{table}");
    }
}
