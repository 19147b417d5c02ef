//! docs/scaling.md holds the table computed from the counts of the code.
//! `F2_WRITE_DOCS=1 cargo test -p f2-lm --test scaling_page` writes it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use f2_engine::{Bf16, Cuda, Partition};
use f2_lm::bench::{zipf_class_ends, zipf_tokens};
use f2_lm::config::{ObjectiveName, TrainConfig};
use f2_lm::model::{Decoder, ModelShape, Work};
use f2_lm::train::{RunCost, settle_shards};

/// GPUs of a host.
const HOST: usize = 8;
/// Bytes per second that a GPU sends to others of its host (`NVLink`), and to other hosts (400
/// Gb/s).
const INSIDE: f64 = 450e9;
const BETWEEN: f64 = 50e9;
/// Floating-point operations per second of a GPU in training.
const SPEED: f64 = 400e12;
/// The most windows of a micro-batch: the last one's backward pass hides the exchange.
const MICRO: f64 = 32.0;
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

/// A step on so many GPUs.
struct Plan {
    decoder: Decoder,
    outputs: f64,
    cost: RunCost,
    gpus: usize,
}

fn plan(objective: ObjectiveName, gpus: usize) -> Plan {
    let mut config = config();
    config.objective.name = objective;
    settle_shards(&mut config, gpus).unwrap();
    let class_ends =
        if objective.needs_classes() { zipf_class_ends(VOCABULARY, CLASSES) } else { Vec::new() };
    let outputs = if class_ends.is_empty() { VOCABULARY as f64 } else { mean_outputs(&class_ends) };
    let (model, positions) = (config.model.clone(), config.batch.sequence);
    let decoder = Decoder::new(ModelShape { model, positions, vocabulary: VOCABULARY, class_ends });
    let cost = RunCost::among::<Cuda<Bf16>>(&decoder, &config, outputs, gpus);
    Plan { decoder, outputs, cost, gpus }
}

/// The cost of a step on so many GPUs.
fn cost(objective: ObjectiveName, gpus: usize) -> RunCost {
    plan(objective, gpus).cost
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

impl Plan {
    /// Seconds of a step's operations.
    fn work(&self) -> f64 {
        self.cost.operations_per_step / (self.gpus as f64 * SPEED)
    }

    /// Seconds of its exchange, one half gradients and one half parameters.
    fn exchange(&self) -> f64 {
        let others = (self.gpus - 1).max(1) as f64;
        let away = self.gpus.saturating_sub(HOST) as f64 / others;
        let sent = self.cost.sent_bytes as f64;
        (sent * (1.0 - away) / INSIDE).max(sent * away / BETWEEN)
    }

    /// Seconds from the start of the last backward pass until the gradient is final from each of
    /// the decoder's places on; the last are those of the whole pass.
    fn ready(&self) -> Vec<f64> {
        let Work { trunk, per_output } = Work::new(&self.decoder, config().batch.sequence);
        let head = per_output * self.outputs / (trunk + per_output * self.outputs);
        let windows = config().batch.size as f64 / self.gpus as f64;
        let pass = 2.0 / 3.0 * self.work() * (MICRO / windows).min(1.0);
        let blocks = self.decoder.blocks.len();
        let block = pass * (1.0 - head) / blocks as f64;
        // The embedding has no products.
        (0..=blocks).chain([blocks]).map(|done| pass * head + done as f64 * block).collect()
    }

    /// Seconds that the exchange adds to the operations: buckets go one after the other, each as
    /// soon as it is final; parameters go when all is done.
    fn added(&self) -> f64 {
        let (finals, ready) = (self.decoder.finals(), self.ready());
        let len = self.decoder.layout.len();
        let partition = Partition::new(len, self.gpus, &finals);
        let half = self.exchange() / 2.0;
        let sent = (0..partition.buckets()).fold(0.0, |sent: f64, bucket| {
            let bucket = partition.bucket(bucket);
            let stage = finals.partition_point(|place| *place > bucket.start);
            sent.max(ready[stage]) + half * bucket.len() as f64 / len as f64
        });
        sent - ready[ready.len() - 1] + half
    }
}

fn table() -> String {
    let mut table =
        "| GPUs | sent by each, MB | exchange, ms | plain: operations, ms | not hidden, ms | \
                     useful | F²: operations, ms | not hidden, ms | useful | F² over plain |\n\
                     |--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for gpus in (0..10).map(|power| 1 << power) {
        let plans = [ObjectiveName::Mle, ObjectiveName::F2].map(|objective| plan(objective, gpus));
        let [plain, factorised] = &plans;
        let columns = |plan: &Plan| {
            let (work, added) = (plan.work(), plan.added());
            let useful = 100.0 * work / (work + added);
            format!("{:.1} | {:.1} | {useful:.0} %", 1e3 * work, 1e3 * added)
        };
        let step = |plan: &Plan| plan.work() + plan.added();
        let _ = writeln!(
            table,
            "| {gpus} | {:.0} | {:.1} | {} | {} | {:.2} |",
            plain.cost.sent_bytes as f64 / 1e6,
            1e3 * plain.exchange(),
            columns(plain),
            columns(factorised),
            step(plain) / step(factorised),
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
        "regenerate it: F2_WRITE_DOCS=1 cargo test -p f2-lm --test scaling_page"
    );
}

/// The bytes that each rank sends grow towards twice the gradient; its share of the optimiser
/// shrinks.
#[test]
fn more_ranks_need_less_memory_each() {
    let costs = [2, 4, 8].map(|gpus| cost(ObjectiveName::F2, gpus));
    assert!(costs.windows(2).all(|pair| pair[1].parameter_bytes < pair[0].parameter_bytes));
    assert!(costs.windows(2).all(|pair| pair[1].sent_bytes > pair[0].sent_bytes));
    assert_eq!(cost(ObjectiveName::F2, 1).sent_bytes, 0);
}
