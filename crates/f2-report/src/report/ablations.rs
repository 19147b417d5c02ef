//! The ablations: other classes, joint decoding, a class nucleus.

use f2_metrics::{Measure, Metric};

use super::palette::OTHERS;
use super::{Block, NamedFigure, Section};
use crate::metrics_table::MetricTable;
use crate::paper;
use crate::plot::{Axis, Figure, LineChart, Series};
use crate::record::ResultRecord;
use crate::results::{ClassTrial, Decoding, Results, ScoreSet};
use f2_classes::Method;

/// The contributions of the classes, decoupled decoding and the class nucleus.
pub(super) fn section(results: &Results) -> Option<Section> {
    let mut blocks = Vec::new();
    let figures = class_figures(results);
    if !figures.is_empty() {
        blocks.push(Block::Figures(figures));
    }
    blocks.extend(method_table(results));
    blocks.extend(decoupling_table(results));
    blocks.extend(nucleus_table(results));
    blocks.extend(authors_table(results));
    let text =
        "The contribution of each part. Fixed rules cut classes of equally many tokens or of \
                equal mass for a given K; MefMax finds its K itself. Decoupled decoding draws a \
                class first; with joint decoding the same model samples from its full posterior."
            .to_owned();
    (!blocks.is_empty()).then(|| Section {
        id: "ablations",
        title: "Ablations".to_owned(),
        text: vec![text],
        blocks,
    })
}

/// A measure plotted over the number of classes: its name, the suffix of the file name, its unit.
type Plotted = (&'static str, &'static str, &'static str, Measure);

const PLOTTED: [Plotted; 4] = [
    ("PPL, test split", "ppl", "", Measure::Metric(Metric::Ppl, 1)),
    ("KLD", "kld", "nats", Measure::Metric(Metric::Kld, 1)),
    ("MS-Jaccard-2", "ms-jaccard-2", "%", Measure::Metric(Metric::MsJaccard, 2)),
    ("Self-BLEU-2", "self-bleu-2", "%", Measure::Metric(Metric::SelfBleu, 2)),
];

fn class_figures(results: &Results) -> Vec<NamedFigure> {
    let fixed = results.class_trials.iter().any(|trial| !trial.method.is_mefmax());
    if !fixed {
        return Vec::new();
    }
    let figure = |plotted: &Plotted| {
        let name = format!("classes-{}", plotted.1);
        let title = format!("{} over the number of classes", plotted.0);
        NamedFigure::new(name, Figure::new(title).line_chart(&class_chart(results, plotted)))
    };
    PLOTTED.iter().map(figure).collect()
}

fn class_chart(results: &Results, (name, _, unit, measure): &Plotted) -> LineChart {
    let trials = &results.class_trials;
    let factor = if *unit == "%" { 100.0 } else { 1.0 };
    let value = |record: &ResultRecord| Some(factor * record.metrics.get(*measure)?);
    let axis = if unit.is_empty() { Axis::new(*name) } else { Axis::new(*name).unit(*unit) };
    let mut chart = LineChart::new(
        format!("{name} over the number of classes"),
        Axis::new("classes K").whole(),
        axis,
    );
    let point = |trial: &ClassTrial| Some((trial.k as f64, value(&trial.record)?));
    let points = |method: Method| {
        let mut points: Vec<(f64, f64)> =
            trials.iter().filter(|trial| trial.method == method).filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let mut equal_mass =
        Series::new("equal frequency", points(Method::EqualFrequency)).look(OTHERS[0]);
    for (k, value) in points(Method::Greedy) {
        equal_mass = equal_mass.star(k, value, "MefMax");
    }
    chart = chart.series(equal_mass);
    let equal_tokens = Series::new("equal tokens", points(Method::EqualTokens)).look(OTHERS[1]);
    chart = chart.series(equal_tokens.dashed());
    let main = results.scores.first();
    let mle = main.and_then(|set| set.records.iter().find(|record| record.name == "MLE"));
    mle.and_then(value).into_iter().fold(chart, |chart, level| chart.reference("MLE", level))
}

/// The MefMax methods side by side, which the paper does not compare.
fn method_table(results: &Results) -> Option<Block> {
    let trials = results.class_trials.iter().filter(|trial| trial.method.is_mefmax());
    let renamed = |trial: &ClassTrial| ResultRecord {
        name: format!("{}, K = {}", trial.method.name(), trial.k),
        ..trial.record.clone()
    };
    let records: Vec<ResultRecord> = trials.map(renamed).collect();
    let caption = "F² trained with the classes of each MefMax method";
    (records.len() > 1)
        .then(|| Block::table("class-methods", caption, MetricTable::new(&records).build()))
}

const BIGRAM_COLUMNS: [&str; 4] = ["KLD", "MSJ2", "SB2", "Uniq"];

fn decoupling_table(results: &Results) -> Option<Block> {
    let joint = results.scores.iter().find(|set| matches!(set.decoding, Decoding::Joint { .. }))?;
    let Decoding::Joint { k } = joint.decoding else { return None };
    let decoupled = results.scores_of(Decoding::TopK { k })?;
    let find =
        |set: &[ResultRecord], name: &str| set.iter().find(|each| each.name == name).cloned();
    let named = |record: Option<ResultRecord>, name: &str| {
        record.map(|record| ResultRecord { name: name.to_owned(), ..record })
    };
    let records: Vec<ResultRecord> = [
        named(find(&decoupled.records, "F²-Softmax"), "F²-Softmax, decoupled"),
        named(find(&joint.records, "F²-Softmax"), "F²-Softmax, joint"),
        find(&decoupled.records, "MLE"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let printed = paper::decoupling().into_iter().map(|(decoupled, record)| {
        let name = match (record.name.as_str(), decoupled) {
            ("MLE", _) => "MLE".to_owned(),
            (name, true) => format!("{name}, decoupled"),
            (name, false) => format!("{name}, joint"),
        };
        ResultRecord { name, ..record }
    });
    let printed: Vec<ResultRecord> = printed.filter(|_| results.paper.is_some()).collect();
    let table = MetricTable::new(&records).beside(&printed).only(&BIGRAM_COLUMNS).build();
    let caption =
        format!("Decoupled decoding on and off, k = {k} (the paper: Melo-Lyrics, k = 20)");
    Some(Block::table("decoupling", caption, table))
}

fn nucleus_table(results: &Results) -> Option<Block> {
    let of_f2 = |records: &[ResultRecord], p: f64| {
        let record = records.iter().find(|record| record.name == "F²-Softmax")?;
        Some(ResultRecord { name: format!("class nucleus {p}"), ..record.clone() })
    };
    let nuclei = results.scores.iter().filter_map(|set| match set.decoding {
        Decoding::ClassNucleus { k, p } => Some((k, p, &set.records)),
        _ => None,
    });
    let nuclei: Vec<_> = nuclei.collect();
    let (k, ..) = *nuclei.first()?;
    let whole = results.scores_of(Decoding::TopK { k }).and_then(|set| of_f2(&set.records, 1.0));
    let cut = nuclei.iter().filter_map(|(_, p, records)| of_f2(records, *p));
    let records: Vec<ResultRecord> = whole.into_iter().chain(cut).collect();
    let caption =
        format!("F² with classes drawn from all (the paper's text) or a nucleus, k = {k}");
    Some(Block::table("class-nucleus", caption, MetricTable::new(&records).build()))
}

/// F² as described in the paper, and as in the authors' program.
fn authors_table(results: &Results) -> Option<Block> {
    let find = |set: &ScoreSet| set.records.iter().find(|each| each.name == "F²-Softmax").cloned();
    let authors = results.scores.iter().find_map(|set| match set.decoding {
        Decoding::AuthorsProgram { k } => Some((k, set.records.first()?.clone())),
        _ => None,
    });
    let (k, authors) = authors?;
    let text = results.scores_of(Decoding::TopK { k }).and_then(find);
    let named = |name: &str, record: ResultRecord| ResultRecord { name: name.to_owned(), ..record };
    let text = text.map(|record| named("as the paper's text", record));
    let records: Vec<ResultRecord> =
        text.into_iter().chain([named("as the authors' program", authors)]).collect();
    let printed = results.paper.map_or_else(Vec::new, |set| set.top_k(k)).into_iter();
    let printed = printed.filter(|record| record.name == "F²-Softmax");
    let printed: Vec<ResultRecord> =
        printed.map(|record| named("as the authors' program", record)).collect();
    let table = MetricTable::new(&records).beside(&printed).build();
    let caption = format!(
        "F² by the paper's text and by the authors' program (its MefMax, a class nucleus of 0.9, \
         small classes filled), k = {k}"
    );
    Some(Block::table("authors-program", caption, table))
}
