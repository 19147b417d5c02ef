//! `f2 bench train`: how fast training steps are.

use clap::Args;
use f2_engine::Device;
use f2_lm::bench::{Measurement, measure};
use f2_lm::config::{ConfigLayers, ObjectiveName, TrainConfig};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::machine::peak_memory;
use crate::output;
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::flags::objective;

/// Time training steps on random tokens, optimiser and clipping included.
#[derive(Args)]
#[command(
    after_help = "Example:\n  f2 bench train --layers 4 --width 256 --sequence 256 --batch 8 \
                        --vocab 30000 --classes 10 --objective f2 --json"
)]
pub(super) struct BenchTrain {
    /// Transformer blocks.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Width of the hidden states; the feed-forward layer is four times as wide.
    #[arg(long, default_value_t = 256)]
    width: usize,
    /// Attention heads [default: one per 64 of the width].
    #[arg(long)]
    heads: Option<usize>,
    /// Tokens in a window.
    #[arg(long, default_value_t = 256)]
    sequence: usize,
    /// Windows per step.
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Size of the vocabulary.
    #[arg(long, default_value_t = 30_000)]
    vocab: usize,
    /// Frequency classes of the F² head.
    #[arg(long, default_value_t = 10)]
    classes: usize,
    /// The training objective.
    #[arg(long, value_parser = objective(), default_value = "mle")]
    objective: ObjectiveName,
    /// Dropout after embedding, attention and feed-forward layer.
    #[arg(long, default_value_t = 0.1)]
    dropout: f64,
    /// Save only the inputs of blocks for the backward pass, and recompute their other activations.
    #[arg(long)]
    recompute: bool,
    /// Steps to time, after two that are not.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    #[command(flatten)]
    device: DeviceChoice,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The result, as `--json` prints it.
#[derive(Serialize)]
struct Line {
    device: &'static str,
    objective: &'static str,
    ms_per_step: f64,
    tokens_per_second: f64,
    peak_bytes: Option<u64>,
    share_of_peak: f64,
    loss: f64,
}

/// The measurement, on whichever device.
struct Measured<'a> {
    bench: &'a BenchTrain,
    config: TrainConfig,
}

impl DeviceTask for Measured<'_> {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Outcome {
        let Self { bench, config } = self;
        let name = device.name();
        let measured = measure(device, &config, bench.vocab, bench.classes, bench.steps)?;
        output::print(&bench.text(name, &measured))
    }
}

impl BenchTrain {
    pub(super) fn run(self) -> Outcome {
        let config = self.config()?;
        self.device.run(Measured { bench: &self, config })
    }

    fn config(&self) -> Result<TrainConfig, Failure> {
        let objective = self.objective;
        if objective.needs_classes() && !(1..=self.vocab).contains(&self.classes) {
            return Err(Failure::usage(format!(
                "--classes {} does not fit a vocabulary of {}",
                self.classes, self.vocab
            ))
            .advise("give from one class to one for each token"));
        }
        if self.steps == 0 {
            return Err(Failure::usage("--steps 0 leaves nothing to time")
                .advise("time at least one; more give a more precise result"));
        }
        let heads = self.heads.unwrap_or((self.width / 64).max(1));
        let flag = |key: &'static str, flag: &str, value: String| {
            (key, value.clone(), format!("--{flag} {value}"))
        };
        let settings = [
            flag("model.layers", "layers", self.layers.to_string()),
            flag("model.width", "width", self.width.to_string()),
            flag("model.heads", "heads", heads.to_string()),
            flag("model.feed_forward", "width", (4 * self.width).to_string()),
            flag("model.dropout", "dropout", self.dropout.to_string()),
            flag("model.vocabulary", "vocab", self.vocab.to_string()),
            flag("batch.sequence", "sequence", self.sequence.to_string()),
            flag("batch.size", "batch", self.batch.to_string()),
            ("batch.recompute", self.recompute.to_string(), "--recompute".to_owned()),
        ];
        let settings =
            settings.iter().map(|(key, value, words)| (*key, value.as_str(), words.as_str()));
        let mut config = ConfigLayers::new().set(settings)?.resolve()?.config;
        config.objective.name = objective;
        Ok(config)
    }

    fn text(&self, device: &'static str, measured: &Measurement) -> String {
        let Measurement { seconds_per_step, tokens_per_second, share_of_peak, loss } = *measured;
        let milliseconds = 1e3 * seconds_per_step;
        let objective = self.objective.as_str();
        if self.json {
            let line = Line {
                device,
                objective,
                ms_per_step: milliseconds,
                tokens_per_second,
                peak_bytes: peak_memory(),
                share_of_peak,
                loss,
            };
            serde_json::to_string(&line).expect("words and numbers have a JSON form") + "\n"
        } else {
            let memory = indicatif::HumanBytes(peak_memory().unwrap_or(0));
            format!(
                "{objective} on {device}: {milliseconds:.1} ms per step, {tokens_per_second:.0} tokens/s, \
                 {:.0} % of peak (its fastest matrix products), {memory} at most, loss {loss:.3}\n",
                100.0 * share_of_peak
            )
        }
    }
}
