//! docs/scaling.md holds the table that the model's own counts give. `F2_WRITE_DOCS=1 cargo test -p
//! f2-lm --test scaling_page` writes it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use f2_engine::{Bf16, Cuda};
use f2_lm::bench::{zipf_class_ends, zipf_tokens};
use f2_lm::config::{ObjectiveName, TrainConfig};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::train::{RunCost, settle_shards};

/// GPUs of a host.
const HOST: usize = 8;
/// Bytes per second that a GPU sends to others of its host (`NVLink`), and to other hosts (400 Gb/s).
const INSIDE: f64 = 450e9;
const BETWEEN: f64 = 50e9;
/// Floating-point operations per second of a GPU in training.
const SPEED: f64 = 400e12;
const VOCABULARY: usize = 50_257;
const CLASSES: usize = 15;
const START: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";

/// GPT-2 small with 512 windows of 1024 tokens to a step.
fn config() -> TrainConfig {
    let mut config = TrainConfig::default();
    (config.model.layers, config.model.width, config.model.heads) = (12, 768, 12);
    (config.model.feed_forward, config.model.tied) = (3072, true);
    (config.batch.sequence, config.batch.size) = (1024, 512);
    config
}

/// The cost of a step on so many GPUs.
fn cost(objective: ObjectiveName, gpus: usize) -> RunCost {
    let mut config = config();
    config.objective.name = objective;
    settle_shards(&mut config, gpus).unwrap();
    let class_ends =
        if objective.needs_classes() { zipf_class_ends(VOCABULARY, CLASSES) } else { Vec::new() };
    let outputs = if class_ends.is_empty() { VOCABULARY as f64 } else { mean_outputs(&class_ends) };
    let (model, positions) = (config.model.clone(), config.batch.sequence);
    let decoder = Decoder::new(ModelShape { model, positions, vocabulary: VOCABULARY, class_ends });
    RunCost::among::<Cuda<Bf16>>(&decoder, &config, outputs, gpus)
}

/// How many output vectors a target is compared with, if tokens follow Zipf's law.
fn mean_outputs(class_ends: &[u32]) -> f64 {
    let sample = zipf_tokens(VOCABULARY, 10_000, 0);
    let size = |token: &u32| {
        let class = class_ends.partition_point(|end| end <= token);
        class_ends[class] - class.checked_sub(1).map_or(0, |before| class_ends[before])
    };
    let inside: f64 = sample.iter().map(|token| f64::from(size(token))).sum();
    inside / sample.len() as f64 + class_ends.len() as f64
}

/// Seconds of a step's operations and of its exchange, which follows them.
fn seconds(cost: &RunCost, gpus: usize) -> [f64; 2] {
    let others = (gpus - 1).max(1) as f64;
    let away = gpus.saturating_sub(HOST) as f64 / others;
    let sent = cost.sent_bytes as f64;
    let exchange = (sent * (1.0 - away) / INSIDE).max(sent * away / BETWEEN);
    [cost.operations_per_step / (gpus as f64 * SPEED), exchange]
}

fn table() -> String {
    let mut table = "| GPUs | sent by each, MB | exchange, ms | plain: operations, ms | useful | \
                     F²: operations, ms | useful | F² over plain |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for gpus in (0..10).map(|power| 1 << power) {
        let costs = [ObjectiveName::Mle, ObjectiveName::F2].map(|objective| cost(objective, gpus));
        let [plain, factorised] = [0, 1].map(|index: usize| seconds(&costs[index], gpus));
        let share = |[work, exchange]: [f64; 2]| 100.0 * work / (work + exchange);
        let _ = writeln!(
            table,
            "| {gpus} | {:.0} | {:.1} | {:.1} | {:.0} % | {:.1} | {:.0} % | {:.2} |",
            costs[0].sent_bytes as f64 / 1e6,
            1e3 * plain[1],
            1e3 * plain[0],
            share(plain),
            1e3 * factorised[0],
            share(factorised),
            (plain[0] + plain[1]) / (factorised[0] + factorised[1]),
        );
    }
    table
}

#[test]
fn the_page_has_the_table_that_the_counts_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scaling.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = table();
    if std::env::var_os("F2_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{START}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, expected,
        "write it anew: F2_WRITE_DOCS=1 cargo test -p f2-lm --test scaling_page"
    );
}

/// What each rank sends grows towards twice the gradient; what it keeps of the optimiser shrinks.
#[test]
fn more_ranks_need_less_memory_each() {
    let costs = [2, 4, 8].map(|gpus| cost(ObjectiveName::F2, gpus));
    assert!(costs.windows(2).all(|pair| pair[1].parameter_bytes < pair[0].parameter_bytes));
    assert!(costs.windows(2).all(|pair| pair[1].sent_bytes > pair[0].sent_bytes));
    assert_eq!(cost(ObjectiveName::F2, 1).sent_bytes, 0);
}
