//! Times the metrics on synthetic or given texts: `time_metrics TEXTS LENGTH [ROUNDS]` or
//! `time_metrics FILE.jsonl [ROUNDS]`, each line of the file an array of token ids.
//!
//! Prints one line of JSON: the fastest and the median seconds of each measurement, and the
//! peak memory of the process. Part of `bench/metrics.py`.

use std::time::Instant;

use f2_metrics::{
    Bands, Convention, Further, FurtherSettings, FurtherTexts, Need, Settings, Smoothing, evaluate,
    self_bleu, self_bleu_parts, training_matches,
};
use serde_json::{Value, json};

const USAGE: &str = "usage: time_metrics TEXTS LENGTH [ROUNDS] | FILE.jsonl [ROUNDS]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments.get(place).map(|text| text.parse().expect(USAGE));
    let (texts, rounds) = match arguments.first().expect(USAGE).parse() {
        Ok(texts) => (synthetic(texts, number(1).expect(USAGE)), number(2)),
        Err(_) => (from_file(&arguments[0]), number(1)),
    };
    let rounds = rounds.unwrap_or(5);
    let scores = self_bleu(&texts, 3, Convention::Textbook).expect("two texts or more");
    let parts = self_bleu_parts(&texts, 3).expect("two texts or more");
    let first: Vec<_> = parts.iter().take(8).map(|each| each.scores(Smoothing::NLTK)).collect();
    // The references are the same texts reversed: as many n-grams, most of them different.
    let references: Vec<Vec<u32>> =
        texts.iter().map(|text| text.iter().rev().copied().collect()).collect();
    let settings = Settings { bands: Some(bands(&texts)), ..Settings::default() };
    let report = json!({
        "texts": texts.len(),
        "tokens": texts.iter().map(Vec::len).sum::<usize>(),
        "threads": rayon::current_num_threads(),
        "self_bleu": scores,
        "first_texts": first,
        "self_bleu_s": time(rounds, || self_bleu(&texts, 3, Convention::Paper)),
        "all_metrics_s": time(rounds, || evaluate(Some(&references), &texts, &settings)),
        "all_metrics_with_human_row_s": time(rounds, || {
            (evaluate(Some(&references), &texts, &settings), evaluate(None, &references, &settings))
        }),
        "further_metrics_s": further(rounds, &texts),
        "peak_memory_mb": peak_memory_mb(),
    });
    println!("{report}");
}

/// Times all further metrics that need no model together and each alone, and the matching of a
/// training text of 10 million tokens for novelty.
fn further(rounds: usize, texts: &[Vec<u32>]) -> Value {
    let strings: Vec<String> = texts.iter().map(|text| spelled(text)).collect();
    let training: Vec<u32> = synthetic(1, 10_000_000).remove(0);
    let matches = training_matches(texts, &training[..], &|_| true).expect("it was not stopped");
    let all = FurtherTexts {
        strings: Some(&strings),
        matches: Some(&matches),
        ..FurtherTexts::new(texts)
    };
    let scored = evaluate(None, texts, &Settings::default()).expect("two texts or more");
    let score = |chosen: Vec<Further>| {
        let settings = FurtherSettings { chosen, ..FurtherSettings::default() };
        scored.clone().add_further(&all, &settings).expect("there are texts");
    };
    let without_a_model =
        |metric: &Further| !matches!(metric.needs(), Some(Need::HumanStates | Need::PromptStates));
    let metrics: Vec<Further> = Further::ALL.into_iter().filter(without_a_model).collect();
    let mut report = json!({
        "all": time(rounds, || score(metrics.clone())),
        "10m_training_tokens": time(rounds, || training_matches(texts, &training[..], &|_| true)),
    });
    for metric in metrics {
        report[metric.key()] = time(rounds, || score(vec![metric]));
    }
    report
}

/// A text of five-letter words, each derived from its id.
fn spelled(text: &[u32]) -> String {
    let letter = |id: u32, place: u32| char::from(b'a' + (id / 26_u32.pow(place) % 26) as u8);
    let word = |id: &u32| (0..5).map(|place| letter(id.wrapping_mul(7919), place)).collect();
    text.iter().map(word).collect::<Vec<String>>().join(" ")
}

/// Zipf-distributed ids below 30,000, as in the texts of a language model.
fn synthetic(texts: usize, length: usize) -> Vec<Vec<u32>> {
    let mut state = 1_u64;
    let mut id = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        (30_000_f64.powf(uniform) - 1.0) as u32
    };
    (0..texts).map(|_| (0..length).map(|_| id()).collect()).collect()
}

fn from_file(path: &str) -> Vec<Vec<u32>> {
    let content = std::fs::read_to_string(path).expect("a readable file");
    let texts = content.lines().map(|line| serde_json::from_str(line).expect("an array of ids"));
    texts.collect()
}

fn bands(texts: &[Vec<u32>]) -> Bands {
    let largest = texts.iter().flatten().copied().max().unwrap_or(0);
    let counts: Vec<u64> = (1..=u64::from(largest) + 1).map(|rank| 1_000_000_000 / rank).collect();
    Bands::from_counts(&counts).expect("falling counts")
}

fn time<T>(rounds: usize, work: impl Fn() -> T) -> Value {
    let mut seconds: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    json!({ "fastest": seconds[0], "median": seconds[rounds / 2] })
}

fn peak_memory_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}
