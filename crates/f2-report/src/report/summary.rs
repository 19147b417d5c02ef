use f2_metrics::Metrics;
use f2_metrics::pairwise::{Contender, Rule, play};

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

/// What a tile shows of a model.
struct Measure {
    metric: &'static str,
    aim: &'static str,
    of: fn(&ResultRecord) -> Option<f64>,
    human: fn(&HumanRecord) -> Option<f64>,
    /// A number that is smaller the better; the second value is human's.
    badness: fn(f64, Option<f64>) -> Option<f64>,
    show: fn(f64) -> String,
}

const CLOSER: fn(f64, Option<f64>) -> Option<f64> = |own, human| Some((own - human?).abs());

fn second(list: &[Option<f64>]) -> Option<f64> {
    list.get(1).copied().flatten()
}

const MEASURES: [Measure; 6] = [
    Measure {
        metric: "KLD",
        aim: "lower is closer",
        of: |record| record.kld,
        human: |_| None,
        badness: |own, _| Some(own),
        show: |value| format!("{value:.2}"),
    },
    Measure {
        metric: "MS-Jaccard-2",
        aim: "higher is closer",
        of: |record| second(&record.ms_jaccard),
        human: |_| None,
        badness: |own, _| Some(-own),
        show: percent,
    },
    Measure {
        metric: "Self-BLEU-2",
        aim: "closest to human",
        of: |record| second(&record.self_bleu),
        human: |human| second(&human.self_bleu),
        badness: CLOSER,
        show: percent,
    },
    Measure {
        metric: "Distinct-2",
        aim: "closest to human",
        of: |record| second(&record.distinct),
        human: |human| second(&human.distinct),
        badness: CLOSER,
        show: percent,
    },
    Measure {
        metric: "Uniq",
        aim: "closest to human",
        of: |record| record.uniq.map(|uniq| uniq as f64),
        human: |human| human.uniq.map(|uniq| uniq as f64),
        badness: CLOSER,
        show: |value| format!("{value:.0}"),
    },
    Measure {
        metric: "Very rare tokens",
        aim: "closest to human",
        of: |record| record.bands.map(|bands| bands.very_rare),
        human: |human| human.bands.map(|bands| bands.very_rare),
        badness: CLOSER,
        show: |value| format!("{:.1} %", 100.0 * value),
    },
];

fn percent(value: f64) -> String {
    format!("{:.1}", 100.0 * value)
}

/// The metrics of the main scores, as far as two models or more have them.
pub(super) fn tiles(results: &Results) -> Vec<Tile> {
    let Some(main) = results.scores.first().filter(|set| set.records.len() > 1) else {
        return Vec::new();
    };
    MEASURES.iter().filter_map(|measure| tile(measure, &main.records)).collect()
}

fn tile(measure: &Measure, records: &[ResultRecord]) -> Option<Tile> {
    let human = records.iter().find_map(|record| record.human.as_ref());
    let human = human.and_then(|human| (measure.human)(human));
    let values: Vec<(&str, f64)> = records
        .iter()
        .filter_map(|record| Some((record.name.as_str(), (measure.of)(record)?)))
        .collect();
    let badness = |value: f64| (measure.badness)(value, human);
    let best = values.iter().filter_map(|&(_, value)| badness(value)).min_by(f64::total_cmp);
    let all = values.iter().copied().chain(human.map(|value| ("Human", value)));
    let largest = all.clone().map(|(_, value)| value).fold(f64::MIN_POSITIVE, f64::max);
    let bars = all.enumerate().map(|(place, (name, value))| Bar {
        name: name.to_owned(),
        value: (measure.show)(value),
        length: (value / largest).max(0.0),
        best: place < values.len() && best.is_some() && badness(value) == best,
    });
    (values.len() > 1).then(|| Tile {
        metric: measure.metric,
        aim: measure.aim,
        bars: bars.collect(),
    })
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
    verdict.into_iter().chain(transfer).chain(results.remarks.iter().cloned()).collect()
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
