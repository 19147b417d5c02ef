//! `f2 generate`: continue prompts with a model.

mod interactive;
mod live;
mod paint;
mod pairs;
mod prompts;
pub(super) mod protocol;
mod record;
mod screen;
mod strategy;
mod writing;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use f2_corpus::END_OF_TEXT;
use f2_experiment::GenerateTask;
use f2_files::check_writable;
use f2_lm::decode::{Generated, Request, StopSequences, Strategy};
use f2_lm::run::SavedModel;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::verbs::device::DeviceChoice;
use crate::verbs::flags::{DecodingChoice, ModelChoice, from_one};
use crate::verbs::gpus::GpuChoice;
use interactive::Conversation;
use prompts::{PromptFlags, Prompts};
use protocol::Rule;
use strategy::StrategyFlags;
use writing::Writing;

/// Continue prompts with a model: greedily, by sampling or by beam search.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 generate run --prompt 'In the beginning'
  f2 generate run --prompts prompts.txt --top-k 3 -n 5 --out samples.jsonl
  f2 generate run --corpus corpus --protocol paper --out f2.jsonl --references human.jsonl
  f2 generate run --corpus songs --protocol lyrics --out f2.jsonl --references human.jsonl
  f2 generate run --corpus pairs --protocol pairs --greedy --out hyps.jsonl --references refs.jsonl
  f2 generate run --prompt 'And' --beam 8 --block-ngrams 3
  f2 generate run --prompt 'And' --top-k 3 --joint
  f2 generate run --prompt 'And' --mirostat-tau 5
  f2 generate run --prompt 'And' --top-n-sigma 1 --dry-multiplier 0.8
  f2 generate run --prompt 'And' --penalty-alpha 0.6 --top-k 4
  f2 generate run --prompt 'And' --contrast smaller-run
  f2 generate run --prompt 'And' --deterministic --top-k 20
  f2 generate run --prompt 'And' --decoding none --top-k 3
  f2 generate run --prompt 'And' --stop . --stop '!'
  f2 generate run --interactive
  f2 generate run --corpus corpus --protocol paper --gpus all --out f2.jsonl

The default strategy is that of the model's decoding.toml, which `f2 tune` writes; a flag overrides
its own setting, and --greedy and --beam override all settings of sampling. Without that file it is
top-k as in the paper's main tables, with k = 20 for --protocol lyrics and k = 3 otherwise. A model
trained on pairs takes prompts as sources: the separator is put after each that has none, and the
target is written to its end. An F² model draws a class first and then a token in it; --joint draws
from the full posterior instead. The text depends on model, prompt, strategy and seed alone. With
--gpus whole batches (--batch; 2,048 texts on a GPU by default) are distributed over the GPUs, and
any number of GPUs writes the same bytes. On a terminal each token has the colour of its frequency
band: plain for frequent ones, cyan for medium, yellow for rare, bold red for very rare. The JSON
lines have `prompt`, `text`, `ids`, `log_probabilities`, with a protocol its name and, for an F²
model, `classes` and `class_log_probabilities`; the tokens' log-probabilities are the model's own,
in nats.")]
pub(crate) struct Generate {
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    prompts: PromptFlags,
    #[command(flatten)]
    strategy: StrategyFlags,
    #[command(flatten)]
    decoding: DecodingChoice,
    /// Tokens to generate after each prompt, at most [default: 100, or what the protocol says].
    #[arg(long, value_name = "N")]
    new_tokens: Option<usize>,
    /// Texts for each prompt.
    #[arg(long, short = 'n', value_name = "N", default_value = "1", value_parser = from_one)]
    samples: NonZeroUsize,
    /// The seed of all random draws.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not stop when the model ends a text.
    #[arg(long)]
    no_stop: bool,
    /// End texts before this; can be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with = "corpus",
        value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    /// Ask for a prompt, answer it, and ask for the next: Ctrl-C stops an answer, Ctrl-D ends. The
    /// answers are those of one `f2 generate` with all these prompts: a repeated prompt gets
    /// another answer, except with --deterministic.
    #[arg(long, short, conflicts_with_all = ["prompt", "prompts", "corpus", "out"])]
    interactive: bool,
    /// Texts generated at a time; affects only speed [default: chosen for the device].
    #[arg(long, value_name = "N", value_parser = from_one)]
    batch: Option<NonZeroUsize>,
    /// Write the texts to this file, as JSON lines.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceChoice,
    #[command(flatten)]
    gpus: GpuChoice,
}

/// Tokens of a text by default.
const USUAL_TOKENS: usize = 100;

/// The model, and how it continues prompts.
#[derive(Clone, Copy)]
struct Inquiry<'a> {
    model: &'a SavedModel,
    strategy: &'a Strategy,
    stops: &'a StopSequences,
}

impl Generate {
    pub(crate) fn run(self) -> Outcome {
        if !self.interactive {
            interrupt::listen();
        }
        let model = self.model.open()?;
        let usual = self.decoding.of(&model)?;
        let strategy = self.strategy.resolve(&model, self.prompts.protocol(), usual)?;
        let stops = StopSequences::new(self.stop.iter().cloned());
        let inquiry = Inquiry { model: &model, strategy: &strategy, stops: &stops };
        if self.interactive {
            return self.device.run(Conversation { verb: &self, inquiry });
        }
        let prompts = self.prompts.read(&model, self.new_tokens.unwrap_or(USUAL_TOKENS))?;
        for path in [self.out.as_ref(), self.prompts.references()].into_iter().flatten() {
            check_writable(path)?;
        }
        let amateur = self.strategy.contrast.amateur(&model)?;
        let request = self.request(&inquiry, &prompts, &[]);
        let amateur = amateur.as_ref();
        let writing =
            Writing { verb: &self, inquiry, amateur, prompts: &prompts, request: &request };
        let (generated, seconds) = self.device.share(self.gpus, writing)?;
        writing.conclude(&generated, seconds)?;
        remark_on_endless(&prompts, &request, &generated);
        Ok(())
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>, device: DeviceChoice) -> Self {
        Self {
            model: ModelChoice::best_of(&task.model),
            prompts: PromptFlags::of_task(task),
            strategy: StrategyFlags::of_decoding(task.decoding, task.factorised),
            decoding: DecodingChoice::none(),
            new_tokens: None,
            samples: NonZeroUsize::MIN,
            seed: task.seed,
            no_stop: false,
            stop: Vec::new(),
            interactive: false,
            batch: None,
            out: Some(task.out.clone()),
            json: false,
            device,
            gpus: GpuChoice::default(),
        }
    }

    /// Reads a line as a prompt.
    fn read_line(&self, line: String, model: &SavedModel) -> Result<Prompts, Failure> {
        self.prompts.of_line(line, model, self.new_tokens.unwrap_or(USUAL_TOKENS))
    }

    /// The token that ends a text. Texts of the paper's protocols have a fixed length and no end.
    fn end(&self, model: &SavedModel, prompts: &Prompts) -> Option<u32> {
        let goes_on = self.no_stop || matches!(prompts.protocol, Some(Rule::Paper(_)));
        if goes_on { None } else { model.vocabulary.token(END_OF_TEXT) }
    }

    /// The request to the model. `earlier` prompts were continued before.
    fn request<'a>(
        &self,
        inquiry: &Inquiry<'a>,
        prompts: &'a Prompts,
        earlier: &'a [Vec<u32>],
    ) -> Request<'a> {
        let Inquiry { model, strategy, stops } = *inquiry;
        Request {
            prompts: &prompts.ids,
            samples: self.samples.get(),
            new_tokens: self.new_tokens.or(prompts.new_tokens).unwrap_or(USUAL_TOKENS),
            strategy,
            seed: self.seed,
            end: self.end(model, prompts),
            stops: (!stops.is_empty()).then_some((stops, &model.vocabulary)),
            earlier,
            batch: self.batch.map(NonZeroUsize::get),
        }
    }
}

/// Reports targets that were cut off.
fn remark_on_endless(prompts: &Prompts, request: &Request<'_>, generated: &Generated) {
    let most = request.new_tokens;
    let endless = generated.texts.iter().filter(|text| text.tokens.len() == most).count();
    if prompts.protocol == Some(Rule::Pairs) && endless > 0 {
        let all = generated.texts.len();
        remark!(
            "note: {endless} of {all} texts reached {most} tokens before an end (--new-tokens)"
        );
    }
}
