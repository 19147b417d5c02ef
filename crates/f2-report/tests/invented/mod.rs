//! Results of a fictitious experiment: the scores are the paper's, the rest is made up, and every
//! part of a report is covered.

// Every test file uses other items.
#![allow(dead_code, missing_docs, unreachable_pub)]

use f2_classes::Method;
use f2_metrics::{BandShares, Interval, Measure, Metric, Metrics};
use f2_report::results::{
    ClassTrial, ClassesResult, CorpusResult, Decoding, RunResult, SampleResult, SampleText,
    SampleToken, ScoreSet, SeedScores, SplitResult, TrainingCost, TransferResult,
};
use f2_report::{DifferenceRecord, HalfRecord, IntervalRecord, PaperSet, ResultRecord, Results};

/// A study of two texts, compared with both sets of the paper.
pub fn study() -> Results {
    let lyrics = PaperSet::Lyrics;
    let mut verse = results();
    verse.paper = Some(lyrics);
    verse.corpus = Some(CorpusResult { name: "Invented verse".to_owned(), ..corpus() });
    verse.scores = vec![
        ScoreSet::new(Decoding::TopK { k: 20 }, complete(lyrics.top_k(20))),
        ScoreSet::new(Decoding::Greedy, complete(lyrics.greedy())),
        ScoreSet::new(Decoding::TopK { k: 3 }, complete(lyrics.top_k(3))),
        ScoreSet::new(Decoding::Joint { k: 20 }, complete(lyrics.top_k(3)).split_off(4)),
    ];
    let mut prose = results();
    prose.transfer = None;
    let mut study = Results::new("F² on two invented texts");
    study.studies = vec![prose, verse];
    study
}

pub fn results() -> Results {
    let set = PaperSet::Wikitext103;
    let scores = |decoding, records| ScoreSet::new(decoding, complete(records));
    let f2_alone = |k| set.top_k(k).into_iter().skip(4).collect::<Vec<_>>();
    let mut results = Results::new("F² on an invented text");
    results.paper = Some(set);
    results.remarks = vec!["Nothing here was measured: the numbers are the paper's.".to_owned()];
    results.scores = vec![
        scores(Decoding::TopK { k: 3 }, set.top_k(3)),
        scores(Decoding::Greedy, set.greedy()),
        scores(Decoding::TopK { k: 20 }, set.top_k(20)),
        scores(Decoding::Joint { k: 3 }, f2_alone(20)),
        scores(Decoding::ClassNucleus { k: 3, p: 0.9 }, f2_alone(5)),
        scores(Decoding::AuthorsProgram { k: 3 }, f2_alone(10)),
    ];
    let again = |seed| SeedScores { seed, records: complete(set.top_k(5)) };
    results.scores[0].other_seeds = vec![again(1), again(2)];
    results.corpus = Some(corpus());
    results.classes = vec![classes("greedy", 9), classes("exact", 13)];
    let ends = [("MLE", 3.2), ("FACE", 3.4), ("UL-token+seq", 3.3), ("F²-Softmax", 3.1)];
    results.runs = ends.map(|(name, end)| run(name, end)).to_vec();
    results.class_trials = trials(&f2_alone(3)[0]);
    results.transfer = Some(transfer(&f2_alone(3)[0]));
    results.samples = vec![sample("In the beginning"), sample("And it came to pass")];
    results
}

/// Adds everything that an evaluation has besides the paper's numbers.
fn complete(records: Vec<ResultRecord>) -> Vec<ResultRecord> {
    let mut records: Vec<ResultRecord> = records.into_iter().map(banded).collect();
    for record in &mut records {
        let metrics = record.metrics.map(|_, value| {
            let (low, high) = (0.97 * value, 1.03 * value);
            Some(Interval { low, high })
        });
        let (level, replicates, seed) = (0.95, 200, 1);
        record.intervals = Some(IntervalRecord { level, replicates, seed, metrics });
        let metrics = Metrics { ppl: None, ..record.metrics.clone() };
        record.half = Some(HalfRecord { texts: 896, seed: 1, metrics });
        if let Some(human) = &mut record.human {
            let metrics = Metrics {
                kld: Some(0.3),
                ms_jaccard: vec![Some(0.8), Some(0.5), Some(0.3)],
                ..human.metrics.clone()
            };
            human.half = Some(HalfRecord { texts: 896, seed: 1, metrics });
        }
    }
    for place in 0..records.len() {
        let (earlier, later) = records.split_at_mut(place);
        later[0].differences = earlier.iter().map(|other| difference(&later[0], other)).collect();
    }
    records
}

/// Differences below a fiftieth of the value are not significant.
fn difference(one: &ResultRecord, other: &ResultRecord) -> DifferenceRecord {
    let metrics = one.metrics.map(|measure, value| {
        let (far, margin) = (value - other.metrics.get(measure)?, value / 50.0);
        let spread = Interval { low: far - margin, high: far + margin };
        (measure != Measure::Metric(Metric::Ppl, 1)).then_some(spread)
    });
    DifferenceRecord { to: other.name.clone(), metrics }
}

fn banded(mut record: ResultRecord) -> ResultRecord {
    let skew = if record.name == "MLE" { 0.12 } else { 0.02 };
    let bands = |skew: f64| BandShares {
        frequent: 0.40 + skew,
        medium: 0.30,
        rare: 0.20 - skew / 2.0,
        very_rare: 0.10 - skew / 2.0,
        relative_to_human: Some([Some(skew / 0.4), Some(0.0), Some(-skew / 0.4), Some(-skew)]),
    };
    record.metrics.bands = Some(bands(skew));
    let mut human = record.human.take().unwrap_or_default();
    human.metrics.bands = Some(BandShares { relative_to_human: None, ..bands(0.0) });
    record.human = Some(human);
    record.texts = 1792;
    record
}

fn corpus() -> CorpusResult {
    let split = |name: &str, words| SplitResult {
        split: name.to_owned(),
        documents: words / 500,
        words,
        tokens: words * 5 / 4,
    };
    CorpusResult {
        name: "An invented text".to_owned(),
        vocabulary: 4096,
        splits: vec![split("train", 600_000), split("valid", 30_000), split("test", 30_000)],
    }
}

fn classes(method: &str, k: usize) -> ClassesResult {
    ClassesResult {
        method: method.to_owned(),
        objective: 1.98,
        tokens: (0..k).map(|class| 1 << class).collect(),
        masses: (0..k).map(|class| (1.0 + 0.1 * (class as f64).sin()) / k as f64).collect(),
        efficiencies: vec![0.97; k],
        curve: (1..20).map(|k| (k, 2.0 - 0.4 / k as f64)).collect(),
    }
}

fn run(name: &str, end: f64) -> RunResult {
    let loss = |step: u64| end + 5.0 * (-(step as f64) / 150.0).exp();
    let objective = match name {
        "MLE" => "mle",
        "FACE" => "face",
        "UL-token+seq" => "unlikelihood-sequence",
        _ => "f2",
    };
    let settings = [("model.layers", "4"), ("batch.size", "16"), ("objective.name", objective)];
    RunResult {
        name: name.to_owned(),
        parameters: 1_870_000,
        device: "an invented device".to_owned(),
        steps: 600,
        seconds: 90.0,
        perplexity: Some(end.exp()),
        validation_perplexity: Some((end + 0.1).exp()),
        cost: Some(TrainingCost {
            tokens: 1_228_800,
            step_seconds: 80.0,
            operations: 1.4e13,
            wall_seconds: Some(95.0),
        }),
        settings: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        training: (1..=600).map(|step| (step, loss(step))).collect(),
        validation: (1..=6).map(|point| (100 * point, loss(100 * point) + 0.1)).collect(),
    }
}

fn trials(record: &ResultRecord) -> Vec<ClassTrial> {
    let trial = |method, k: usize| {
        let mut record = record.clone();
        record.metrics.kld = Some(0.6 + (k as f64 - 9.0).abs() / 20.0);
        ClassTrial { method, k, record }
    };
    let fixed = [2, 4, 8, 16]
        .into_iter()
        .flat_map(|k| [trial(Method::EqualTokens, k), trial(Method::EqualFrequency, k)]);
    fixed.chain([trial(Method::Greedy, 9), trial(Method::Exact, 13)]).collect()
}

fn transfer(record: &ResultRecord) -> TransferResult {
    let named = |name: &str, ppl| {
        let mut record = ResultRecord { name: name.to_owned(), ..record.clone() };
        record.metrics.ppl = Some(ppl);
        record
    };
    TransferResult {
        pretraining: CorpusResult { name: "Another text".to_owned(), ..corpus() },
        target: corpus(),
        decoding: Decoding::TopK { k: 3 },
        runs: [("Pretrained", 3.3), ("From scratch", 3.2), ("Transferred", 2.9)]
            .map(|(name, end)| run(name, end))
            .to_vec(),
        records: vec![named("From scratch", 24.5), named("Transferred", 18.2)],
    }
}

fn sample(prefix: &str) -> SampleResult {
    let words = "the waters were gathered together unto one place , and <the> dry & barren land \
                 yielded Philippi frankincense beside them";
    let token = |(place, word): (usize, &str)| SampleToken {
        text: format!(" {word}"),
        band: [0, 1, 0, 2, 1, 0, 3][place % 7],
        class: Some(place as u32 % 9 + 1),
        probability: Some(0.5 / (place + 1) as f64),
    };
    let tokens: Vec<SampleToken> = words.split_whitespace().enumerate().map(token).collect();
    let text = |name: &str| SampleText { name: name.to_owned(), tokens: tokens.clone() };
    SampleResult {
        place: None,
        prefix: prefix.to_owned(),
        continuations: vec![text("Human"), text("MLE"), text("F²-Softmax")],
    }
}
