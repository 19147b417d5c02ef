//! Metrics of the server in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Served;

/// A counter or a gauge.
#[derive(Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of a histogram of durations, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// A histogram of durations.
#[derive(Default)]
pub(crate) struct Durations(Mutex<Observed>);

#[derive(Clone, Copy, Default)]
struct Observed {
    /// Not cumulative; the last count is of durations above all bounds.
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Durations {
    pub(crate) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().filter(|bound| seconds > **bound).count();
        let mut observed = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observed.counts[bucket] += 1;
        observed.sum += seconds;
    }

    fn write(&self, name: &str, labels: &str, page: &mut String) {
        let observed = *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut total = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (count, bound) in observed.counts.iter().zip(bounds) {
            total += count;
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{bound}\"}} {total}");
        }
        let _ = writeln!(page, "{name}_sum{{{labels}}} {}", observed.sum);
        let _ = writeln!(page, "{name}_count{{{labels}}} {total}");
    }
}

/// The metrics of one model.
#[derive(Default)]
pub(crate) struct ModelMetrics {
    /// Tokens chosen.
    pub(crate) tokens: Number,
    /// Tokens of prompts.
    pub(crate) prompt_tokens: Number,
    /// Sequences in the batch.
    pub(crate) running: Number,
    /// Requests refused because too many waited.
    pub(crate) refused: Number,
    /// Requests accepted.
    pub(crate) requests: Number,
    /// The time from a text's arrival at the model to its first token.
    pub(crate) first_token: Durations,
}

/// The response of `GET /metrics`.
pub(crate) fn page<'a>(models: impl Iterator<Item = &'a Served> + Clone) -> String {
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Served) -> u64| {
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for model in models.clone() {
            let _ = writeln!(page, "{name}{{{}}} {}", label(model), value(model));
        }
    };
    let metrics =
        |model: &Served, number: fn(&ModelMetrics) -> &Number| number(&model.metrics).get();
    family("f2_requests_total", "counter", "Completion requests taken.", &|model| {
        metrics(model, |metrics| &metrics.requests)
    });
    family("f2_refused_total", "counter", "Requests refused with status 429.", &|model| {
        metrics(model, |metrics| &metrics.refused)
    });
    family("f2_tokens_total", "counter", "Tokens generated.", &|model| {
        metrics(model, |metrics| &metrics.tokens)
    });
    family("f2_prompt_tokens_total", "counter", "Tokens of prompts.", &|model| {
        metrics(model, |metrics| &metrics.prompt_tokens)
    });
    family("f2_running", "gauge", "Texts in the batch.", &|model| {
        metrics(model, |metrics| &metrics.running)
    });
    family("f2_waiting", "gauge", "Texts that wait for a place in the batch.", &|model| {
        model.waiting() as u64
    });
    let name = "f2_first_token_seconds";
    let _ =
        writeln!(page, "# HELP {name} Seconds to a text's first token.\n# TYPE {name} histogram");
    for model in models {
        model.metrics.first_token.write(name, &label(model), &mut page);
    }
    page
}

fn label(model: &Served) -> String {
    let name = model.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("model=\"{name}\"")
}
