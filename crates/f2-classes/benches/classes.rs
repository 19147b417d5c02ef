//! Time of the methods on a vocabulary of 40,000: `cargo bench -p f2-classes`.
//!
//! Counts follow Zipf's law, with and without Mandelbrot's shift; `exact` tries every K up to
//! twice the cap. Medians of several runs, on as many threads as the machine has cores.

use std::hint::black_box;
use std::time::{Duration, Instant};

use f2_classes::{Method, RankCounts, select};

const VOCABULARY: usize = 40_000;
const OCCURRENCES: f64 = 1e8;
const RUNS: usize = 9;

fn main() {
    println!("vocabulary {VOCABULARY}, {} threads", rayon::current_num_threads());
    println!("{:<24}{:>4}  {:<16}{:>4}{:>11}", "counts", "cap", "method", "K", "median");
    for (s, q) in [(1.2, 0.0), (1.0, 0.0), (1.1, 2.7), (0.8, 0.0), (0.9, 2.7)] {
        let by_id = zipf(s, q);
        let counts = RankCounts::new(&by_id).expect("counts above zero");
        let name = format!("Zipf s = {s}, q = {q}");
        let line = |method: &str, k: &str, median: Duration| {
            let (cap, median) = (counts.class_cap(), median.as_secs_f64() * 1e3);
            println!("{name:<24}{cap:>4}  {method:<16}{k:>4}{median:>8.2} ms");
        };
        line("(ranking)", "", median(|| RankCounts::new(black_box(&by_id))));
        for method in Method::ALL {
            let chosen = select(&counts, method, None).expect("every method reaches some K");
            let median = median(|| select(black_box(&counts), method, None));
            line(method.name(), &chosen.classes().len().to_string(), median);
        }
    }
}

fn zipf(s: f64, q: f64) -> Vec<u64> {
    let weights: Vec<f64> = (1..=VOCABULARY).map(|rank| (rank as f64 + q).powf(-s)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| (weight / sum * OCCURRENCES).round().max(1.0) as u64).collect()
}

fn median<T>(mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}
