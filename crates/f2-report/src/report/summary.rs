use f2_metrics::Metrics;
use f2_metrics::pairwise::{Contender, Rule, play};

use crate::metrics_table::{Column, VERY_RARE, band_columns, best, metric_columns};
use crate::record::{HumanRecord, ResultRecord};
use crate::results::Results;

/// One metric at a glance: a bar for each model and for human text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// The metric.
    pub metric: &'static str,
    /// What is good, in two or three words.
    pub aim: &'static str,
    /// The models, then human.
    pub bars: Vec<Bar>,
}

/// One value among others.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Whose.
    pub name: String,
    /// The value as it is shown.
    pub value: String,
    /// Its share of the tile's largest, 0 to 1.
    pub length: f64,
    /// Whether it is the closest to human.
    pub best: bool,
}

/// The columns of the tables that tiles are made of, and what they are called there.
const METRICS: [(&str, &str); 6] = [
    ("KLD", "KLD"),
    ("MSJ2", "MS-Jaccard-2"),
    ("SB2", "Self-BLEU-2"),
    ("D2", "Distinct-2"),
    ("Uniq", "Uniq"),
    (VERY_RARE, "Very rare tokens"),
];

/// The metrics of the main scores, as far as two models or more have them.
pub(super) fn tiles(results: &Results) -> Vec<Tile> {
    let Some(main) = results.scores.first().filter(|set| set.records.len() > 1) else {
        return Vec::new();
    };
    let columns: Vec<Column> =
        metric_columns(&main.records).into_iter().chain(band_columns()).collect();
    let tile = |(heading, metric)| {
        let column = columns.iter().find(|column| column.heading == heading)?;
        tile(metric, column, &main.records)
    };
    METRICS.into_iter().filter_map(tile).collect()
}

fn tile(metric: &'static str, column: &Column, records: &[ResultRecord]) -> Option<Tile> {
    let human = records.iter().find_map(|record| record.human.as_ref());
    let models: Vec<(&ResultRecord, f64)> =
        records.iter().filter_map(|record| Some((record, (column.of_model)(record)?))).collect();
    let human_value = human.and_then(|human| (column.of_human)(human));
    let values = models.iter().map(|(_, value)| *value).chain(human_value);
    let largest = values.fold(f64::MIN_POSITIVE, f64::max);
    let best = best(column, records, human);
    let unit = if column.heading == VERY_RARE { " %" } else { "" };
    let bar = |name: &str, value: f64, best: bool| Bar {
        name: name.to_owned(),
        value: column.cell(Some(value), None) + unit,
        length: (value / largest).max(0.0),
        best,
    };
    let bars = models.iter().map(|(record, value)| {
        bar(&record.name, *value, best.is_some() && column.badness(record, human) == best)
    });
    let bars = bars.chain(human_value.map(|value| bar("Human", value, false)));
    (models.len() > 1).then(|| Tile { metric, aim: column.aim(), bars: bars.collect() })
}

/// What came out, in words.
pub(super) fn lead(results: &Results) -> Vec<String> {
    let verdict = results.scores.first().and_then(|main| {
        let find = |name: &str| main.records.iter().find(|record| record.name == name);
        let (mle, f2) = (find("MLE")?, find("F²-Softmax")?);
        let human = f2.human.as_ref().map(HumanRecord::metrics)?;
        Some(format!("{} ({}).", versus(f2, mle, &human), main.decoding))
    });
    let transfer = super::transfer::lead(results);
    let size = super::size::remark(results);
    let sentences = verdict.into_iter().chain(transfer).chain(size);
    sentences.chain(results.remarks.iter().cloned()).collect()
}

fn versus(f2: &ResultRecord, mle: &ResultRecord, human: &Metrics) -> String {
    let contender =
        |record: &ResultRecord| Contender { ppl: record.ppl, metrics: record.metrics() };
    let outcome = play(&contender(f2), &contender(mle), human, Rule::FITTED);
    let compared = outcome.points.iter().flatten().count();
    format!(
        "F²-Softmax is closer to human text than maximum likelihood on {} of {compared} metrics",
        outcome.won()
    )
}
