//! `f2 train --dry-run`: what a run would cost.

use std::path::Path;
use std::time::Duration;

use f2_engine::Device;
use f2_lm::batch::TrainingBatches;
use f2_lm::bench::{zipf_class_ends, zipf_tokens};
use f2_lm::config::TrainConfig;
use f2_lm::memory::available_memory;
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::checkpoint;
use f2_lm::schedule::Budget;
use f2_lm::train::{RunCost, TrainingCorpus, check_splits, settle_shards};
use indicatif::{HumanBytes, HumanDuration};
use serde_json::json;

use super::Train;
use super::watch::long_warmup;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::verbs::device::DeviceTask;
use crate::verbs::speed::{ASSUMED_SHARE, steady_peak};

/// The number of classes assumed without a corpus: the usual one for text.
const ASSUMED_CLASSES: usize = 15;

/// The text as far as it is known: all of it, or the vocabulary alone.
struct Known {
    vocabulary: usize,
    class_ends: Vec<u32>,
    mean_outputs: f64,
    /// Of the training split.
    batches: Option<TrainingBatches>,
}

/// A run whose cost is estimated, on whichever device.
struct Planned {
    decoder: Decoder,
    config: TrainConfig,
    known: Known,
    /// How many GPUs share it.
    ranks: usize,
    json: bool,
}

impl DeviceTask for Planned {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Outcome {
        let Self { decoder, config, known, ranks, json } = self;
        let mut cost = RunCost::among::<D>(&decoder, &config, known.mean_outputs, ranks);
        if let Some(batches) = &known.batches {
            cost = cost.of_batches(&decoder, &config, known.mean_outputs, batches);
        }
        let speed = ranks as f64 * ASSUMED_SHARE * steady_peak(|| device.measured_peak());
        let estimate = Estimate::new(&config, &known, &cost, speed);
        let available = available_memory(&device);
        if let Some(words) = long_warmup(config.schedule.warmup_steps, estimate.steps) {
            remark!("{words}");
        }
        output::print(&if json {
            to_json(&cost, &estimate, available, ranks)
        } else {
            to_text(&config, &known, &cost, &estimate, available, ranks)
        })
    }
}

impl Train {
    pub(super) fn print_cost(&self) -> Outcome {
        let (mut config, known) = match &self.corpus {
            Some(corpus) => self.with_corpus(corpus)?,
            None => self.without_corpus()?,
        };
        let ranks = self.gpus.planned()?;
        settle_shards(&mut config, ranks)?;
        let decoder = Decoder::new(ModelShape {
            model: config.model.clone(),
            positions: config.batch.sequence,
            vocabulary: known.vocabulary,
            class_ends: known.class_ends.clone(),
        });
        let planned = Planned { decoder, config, known, ranks, json: self.json };
        self.device.run(planned)
    }

    fn with_corpus(&self, corpus: &Path) -> Result<(TrainConfig, Known), Failure> {
        let source = TrainingCorpus::open(corpus)?;
        let vocabulary = source.record.vocabulary;
        let initial = self.initial_model(Some(&source))?;
        let settings = self.settings.given(initial.is_none())?;
        let config = settings.resolve(initial.as_ref().into())?.for_corpus(&source)?;
        let batches = check_splits(&config, &source.train, &source.valid)?;
        let classes = source.classes_for(
            &config,
            self.classes.as_deref(),
            &corpus.join(checkpoint::CLASSES),
        )?;
        let class_ends = classes.map(|classes| classes.ends).unwrap_or_default();
        let mean_outputs = source.mean_outputs(&class_ends);
        Ok((config, Known { vocabulary, class_ends, mean_outputs, batches: Some(batches) }))
    }

    fn without_corpus(&self) -> Result<(TrainConfig, Known), Failure> {
        let initial = self.initial_model(None)?;
        let settings = self.settings.given(initial.is_none())?;
        let config = settings.resolve(initial.as_ref().into())?.config;
        let Some(vocabulary) = config.model.vocabulary else {
            return Err(Failure::usage("the size of the vocabulary is not known")
                .advise("name a corpus, a preset, or `--set model.vocabulary=N`"));
        };
        let class_ends = if config.objective.name.needs_classes() {
            zipf_class_ends(vocabulary, ASSUMED_CLASSES.min(vocabulary))
        } else {
            Vec::new()
        };
        let mean_outputs = mean_zipf_outputs(vocabulary, &class_ends);
        Ok((config, Known { vocabulary, class_ends, mean_outputs, batches: None }))
    }
}

/// How many output vectors a target is compared with on average, if tokens follow Zipf's law.
fn mean_zipf_outputs(vocabulary: usize, class_ends: &[u32]) -> f64 {
    if class_ends.is_empty() {
        return vocabulary as f64;
    }
    let sample = zipf_tokens(vocabulary, 10_000, 0);
    let size = |token: &u32| {
        let class = class_ends.partition_point(|end| end <= token);
        class_ends[class] - class.checked_sub(1).map_or(0, |before| class_ends[before])
    };
    let inside: f64 = sample.iter().map(|token| f64::from(size(token))).sum();
    inside / sample.len() as f64 + class_ends.len() as f64
}

/// How long the run would take, as far as that is known.
struct Estimate {
    seconds_per_step: f64,
    steps: Option<u64>,
    seconds: Option<f64>,
}

impl Estimate {
    fn new(config: &TrainConfig, known: &Known, cost: &RunCost, speed: f64) -> Self {
        let seconds_per_step = cost.operations_per_step / speed;
        let budget = match &known.batches {
            Some(batches) => Budget::new(&config.budget, batches),
            None => Budget::without_text(&config.budget, &config.batch),
        };
        let by_steps = budget.steps.map(|steps| steps as f64 * seconds_per_step);
        let seconds = [by_steps, budget.seconds].into_iter().flatten().reduce(f64::min);
        let steps = seconds.map(|seconds| (seconds / seconds_per_step).round() as u64);
        Self { seconds_per_step, steps, seconds }
    }
}

fn to_json(cost: &RunCost, estimate: &Estimate, available: Option<u64>, ranks: usize) -> String {
    let cost = json!({
        "parameters": cost.parameters,
        "bytes": cost.bytes(),
        "available_bytes": available,
        "ranks": ranks,
        "sent_bytes_per_step": cost.sent_bytes,
        "operations_per_step": cost.operations_per_step,
        "tokens_per_step": cost.tokens_per_step,
        "estimated_seconds_per_step": estimate.seconds_per_step,
        "steps": estimate.steps,
        "estimated_seconds": estimate.seconds,
    });
    format!("{cost}\n")
}

fn to_text(
    config: &TrainConfig,
    known: &Known,
    cost: &RunCost,
    estimate: &Estimate,
    available: Option<u64>,
    ranks: usize,
) -> String {
    let classes = match (known.class_ends.len(), &known.batches) {
        (0, _) => String::new(),
        (classes, Some(_)) => format!(", {classes} classes"),
        (classes, None) => format!(", {classes} classes assumed"),
    };
    let available =
        available.map_or_else(String::new, |bytes| format!("; {} available", HumanBytes(bytes)));
    let whole = match (estimate.steps, estimate.seconds) {
        (Some(steps), Some(seconds)) => {
            format!("{steps} steps, about {}", HumanDuration(Duration::from_secs_f64(seconds)))
        }
        _ => "depends on the size of the corpus, or has no limit yet".to_owned(),
    };
    let mut lines = vec![
        format!(
            "objective: {}, vocabulary {}{classes}",
            config.objective.name.as_str(),
            known.vocabulary
        ),
        format!("parameters: {:.1} M ({})", cost.parameters as f64 / 1e6, cost.parameters),
        format!(
            "memory{}: {} ({} for parameters and optimiser, {} for activations, {} for the head\
             {available})",
            if ranks > 1 { " of each GPU" } else { "" },
            HumanBytes(cost.bytes()),
            HumanBytes(cost.parameter_bytes),
            HumanBytes(cost.activation_bytes),
            HumanBytes(cost.head_bytes)
        ),
        tokens_per_step(config, known, cost),
        format!(
            "time: about {} per step, at {:.0} % of this machine's measured peak",
            step_time(estimate.seconds_per_step),
            100.0 * ASSUMED_SHARE
        ),
        format!("whole run: {whole}"),
    ];
    if ranks > 1 {
        let sent = HumanBytes(cost.sent_bytes);
        lines.insert(3, format!("exchange: {sent} sent by each of {ranks} GPUs in a step"));
    }
    lines.join("\n") + "\n"
}

fn tokens_per_step(config: &TrainConfig, known: &Known, cost: &RunCost) -> String {
    let (tokens, rows) = (cost.tokens_per_step, config.batch.size);
    match known.batches {
        Some(TrainingBatches::Documents(_)) => format!(
            "tokens per step: about {tokens} ({rows} documents or parts of up to {})",
            config.batch.sequence
        ),
        _ => format!("tokens per step: {tokens} ({rows} windows of {})", config.batch.sequence),
    }
}

fn step_time(seconds: f64) -> String {
    if seconds < 10.0 { format!("{:.0} ms", 1e3 * seconds) } else { format!("{seconds:.0} s") }
}
