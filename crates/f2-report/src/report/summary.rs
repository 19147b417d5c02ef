//! The top of the page: the outcome in words, and the metrics at a glance.

use f2_metrics::pairwise::{Rule, play};
use f2_metrics::{Measure, Metric, Metrics};

use super::palette::Palette;
use super::study::{Study, label};
use crate::metrics_table::{Column, best};
use crate::record::ResultRecord;
use crate::results::Results;

/// One metric at a glance: a bar for each model and for human text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// The metric.
    pub metric: &'static str,
    /// The corpus, if there are several.
    pub corpus: Option<String>,
    /// The direction of better values, such as `lower is closer`.
    pub aim: &'static str,
    /// The models, then human.
    pub bars: Vec<Bar>,
}

/// A bar of a tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The model, or `Human`.
    pub name: String,
    /// The number of its look.
    pub look: usize,
    /// The formatted value.
    pub value: String,
    /// The value relative to the largest of the tile, 0 to 1.
    pub length: f64,
    /// Whether it is the closest to human.
    pub best: bool,
}

/// The measures shown in tiles, and their names there.
const MEASURES: [(Measure, &str); 6] = [
    (Measure::Metric(Metric::Kld, 1), "KLD"),
    (Measure::Metric(Metric::MsJaccard, 2), "MS-Jaccard-2"),
    (Measure::Metric(Metric::SelfBleu, 2), "Self-BLEU-2"),
    (Measure::Metric(Metric::Distinct, 2), "Distinct-2"),
    (Measure::Metric(Metric::Uniq, 1), "Uniq"),
    (Measure::Band(3), "Very rare tokens"),
];

/// Tiles for the metrics of the main scores that at least two models have.
pub(super) fn tiles(study: &Study<'_>) -> Vec<Tile> {
    let of_corpus = |results: &&Results| {
        let main = results.scores.first().map(|set| set.records.as_slice());
        let corpus = (!study.is_single()).then(|| label(results));
        let records = main.filter(|records| records.len() > 1).unwrap_or_default();
        let tiles = MEASURES.into_iter().filter_map(|(measure, name)| {
            Some(Tile { corpus: corpus.clone(), ..tile(name, measure, records, &study.palette)? })
        });
        tiles.collect::<Vec<_>>()
    };
    study.corpora.iter().flat_map(of_corpus).collect()
}

fn tile(
    metric: &'static str,
    measure: Measure,
    records: &[ResultRecord],
    palette: &Palette,
) -> Option<Tile> {
    let column = Column(measure);
    let human = records.iter().find_map(|record| record.human.as_ref());
    let models: Vec<(&ResultRecord, f64)> =
        records.iter().filter_map(|record| Some((record, record.metrics.get(measure)?))).collect();
    let human_value = human.and_then(|human| human.metrics.get(measure));
    let values = models.iter().map(|(_, value)| *value).chain(human_value);
    let largest = values.fold(f64::MIN_POSITIVE, f64::max);
    let best = best(column, records, human);
    let unit = if matches!(measure, Measure::Band(_)) { " %" } else { "" };
    let bar = |name: &str, value: f64, best: bool| Bar {
        name: name.to_owned(),
        look: palette.look(name),
        value: column.number(value) + unit,
        length: (value / largest).max(0.0),
        best,
    };
    let bars = models.iter().map(|(record, value)| {
        bar(&record.name, *value, best.is_some() && column.badness(record, human) == best)
    });
    let bars = bars.chain(human_value.map(|value| bar("Human", value, false)));
    (models.len() > 1).then(|| Tile {
        metric,
        corpus: None,
        aim: column.aim(),
        bars: bars.collect(),
    })
}

/// The outcome in words, and remarks.
pub(super) fn lead(results: &Results, study: &Study<'_>) -> Vec<String> {
    let of_corpus = |corpus: &&Results| -> Vec<String> {
        let name = corpus.corpus.as_ref().map_or(&corpus.title, |text| &text.name);
        let named = |line: String| if study.is_single() { line } else { format!("{name}: {line}") };
        outcome(corpus).into_iter().map(named).collect()
    };
    let lines = study.corpora.iter().flat_map(of_corpus);
    lines.chain(results.remarks.iter().cloned()).collect()
}

fn outcome(results: &Results) -> Vec<String> {
    let verdict = results.scores.first().and_then(|main| {
        let find = |name: &str| main.records.iter().find(|record| record.name == name);
        let (mle, f2) = (find("MLE")?, find("F²-Softmax")?);
        let human = &f2.human.as_ref()?.metrics;
        Some(format!("{} ({}).", versus(f2, mle, human), main.decoding))
    });
    let others = [
        super::ceiling::lead(results),
        super::transfer::lead(results),
        super::size::remark(results),
    ];
    verdict.into_iter().chain(others.into_iter().flatten()).collect()
}

fn versus(f2: &ResultRecord, mle: &ResultRecord, human: &Metrics) -> String {
    let outcome = play(&f2.metrics, &mle.metrics, human, Rule::FITTED);
    let compared = outcome.points.iter().flatten().count();
    format!(
        "F²-Softmax is closer to human text than maximum likelihood on {} of {compared} metrics",
        outcome.won()
    )
}
