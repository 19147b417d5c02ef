//! `f2 generate`: continue prompts with a model.

mod paint;
mod prompts;
mod protocol;
mod record;
mod screen;
mod strategy;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use f2_corpus::END_OF_TEXT;
use f2_engine::Device;
use f2_experiment::GenerateTask;
use f2_files::{check_writable, write_text_atomically};
use f2_lm::decode::{Continuation, Event, Generated, Generator, Request};
use f2_lm::run::SavedModel;

use crate::failure::{Failure, Kind, Outcome};
use crate::progress::{Progress, Unit};
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::flags::{ModelChoice, from_one};
use crate::{interrupt, output};
use prompts::{PromptFlags, Prompts};
use record::Record;
use screen::Screen;
use strategy::StrategyFlags;

/// Continue prompts with a model: greedily, by sampling or by beam search.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 generate run --prompt 'In the beginning'
  f2 generate run --prompts prompts.txt --top-k 3 -n 5 --out samples.jsonl
  f2 generate run --corpus corpus --protocol paper --out f2.jsonl --references human.jsonl
  f2 generate run --corpus songs --protocol lyrics --out f2.jsonl --references human.jsonl
  f2 generate run --prompt 'And' --beam 8 --block-ngrams 3
  f2 generate run --prompt 'And' --top-k 3 --joint

Without a strategy: top-k as in the paper's main tables, with k = 20 for --protocol lyrics and k = 3
otherwise. An F² model draws a class first
and then a token in it; --joint draws from the full posterior instead. The text depends on model,
prompt, strategy and seed alone. On a terminal each token has the colour of its frequency band:
plain for frequent ones, cyan for medium, yellow for rare, bold red for very rare. The JSON lines
have `prompt`, `text`, `ids`, `log_probabilities`, with a protocol its name and, for an F² model, `classes` and
`class_log_probabilities`; the tokens' log-probabilities are the model's own, in nats.")]
pub(crate) struct Generate {
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    prompts: PromptFlags,
    #[command(flatten)]
    strategy: StrategyFlags,
    /// Tokens to generate after each prompt, at most [default: 100, or what the protocol says].
    #[arg(long, value_name = "N")]
    new_tokens: Option<usize>,
    /// Texts for each prompt.
    #[arg(long, short = 'n', value_name = "N", default_value = "1", value_parser = from_one)]
    samples: NonZeroUsize,
    /// The seed of all random draws.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not stop where the model ends a text.
    #[arg(long)]
    no_stop: bool,
    /// Texts worked on at a time; it changes the speed, never the texts [default: what suits the
    /// device and its memory].
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
}

/// The request, for whichever device runs it.
struct Writing<'a> {
    verb: &'a Generate,
    model: &'a SavedModel,
    prompts: &'a Prompts,
    request: &'a Request<'a>,
}

impl DeviceTask for Writing<'_> {
    type Output = (Generated, f64);

    fn run<D: Device>(self, device: D) -> Result<Self::Output, Failure> {
        self.verb.write(device, self.model, self.prompts, self.request)
    }
}

impl Generate {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        let model = self.model.open()?;
        let strategy = self.strategy.resolve(&model, self.prompts.protocol())?;
        let prompts = self.prompts.read(&model)?;
        for path in [self.out.as_ref(), self.prompts.references()].into_iter().flatten() {
            check_writable(path)?;
        }
        let new_tokens = self.new_tokens.or(prompts.new_tokens).unwrap_or(100);
        let request = Request {
            prompts: &prompts.ids,
            samples: self.samples.get(),
            new_tokens,
            strategy: &strategy,
            seed: self.seed,
            end: self.end(&model, &prompts),
            batch: self.batch.map(NonZeroUsize::get),
        };
        let writing = Writing { verb: &self, model: &model, prompts: &prompts, request: &request };
        let (generated, seconds) = self.device.run(writing)?;
        if let Some(path) = self.prompts.references() {
            write_text_atomically(path, &record::references(&model, &prompts)?)?;
        }
        self.conclude(&model, &prompts, &generated, seconds, request.texts())
    }

    /// The request of a stage.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>, device: DeviceChoice) -> Self {
        Self {
            model: ModelChoice::best_of(&task.model),
            prompts: PromptFlags::of_task(task),
            strategy: StrategyFlags::of_decoding(task.decoding, task.factorised),
            new_tokens: None,
            samples: NonZeroUsize::MIN,
            seed: task.seed,
            no_stop: false,
            batch: None,
            out: Some(task.out.clone()),
            json: false,
            device,
        }
    }

    /// The token that ends a text. The protocol's texts have a length, and no end.
    fn end(&self, model: &SavedModel, prompts: &Prompts) -> Option<u32> {
        let goes_on = self.no_stop || prompts.protocol.is_some();
        if goes_on { None } else { model.vocabulary.token(END_OF_TEXT) }
    }

    /// Generates and shows the texts; also returns the seconds it took once the memory was allocated.
    fn write<D: Device>(
        &self,
        device: D,
        model: &SavedModel,
        prompts: &Prompts,
        request: &Request<'_>,
    ) -> Result<(Generated, f64), Failure> {
        let loaded = model.load(device)?;
        let generator = Generator { model: &loaded };
        let texts = request.texts();
        let mut screen = Screen::new(model, prompts, request, [self.json, self.out.is_some()]);
        let total = texts.saturating_mul(request.new_tokens) as u64;
        // A single text is its own progress.
        let progress = (texts > 1 || !screen.is_live())
            .then(|| Progress::new("writing", Some(total), Unit::Tokens));
        let mut failure = None;
        let mut began = Instant::now();
        let mut observer = |event: Event<'_>| {
            if let Event::Ready = event {
                began = Instant::now();
            }
            if let (Event::Step { tokens }, Some(progress)) = (event, &progress) {
                progress.advance(tokens as u64);
            }
            let shown = match &progress {
                Some(progress) => progress.aside(|| screen.see(event)),
                None => screen.see(event),
            };
            failure = failure.take().or(shown.err());
        };
        let generated = generator.generate(request, &mut observer, &|| self.may_stop())?;
        let seconds = began.elapsed().as_secs_f64();
        failure.map_or(Ok((generated, seconds)), Err)
    }

    /// Whether to stop early: on an interrupt, or when nobody reads the output any more.
    fn may_stop(&self) -> bool {
        interrupt::asked() || (self.out.is_none() && output::reader_left())
    }

    fn conclude(
        &self,
        model: &SavedModel,
        prompts: &Prompts,
        generated: &Generated,
        seconds: f64,
        all: usize,
    ) -> Outcome {
        let record = |text: &Continuation| {
            Record::new(&model.vocabulary, prompts, text).map(|record| record.line())
        };
        let made = generated.texts.len();
        // An incomplete set of texts never replaces an older file.
        let out = self.out.as_ref().filter(|path| generated.complete || !path.is_file());
        if let Some(path) = out {
            let lines: String =
                generated.texts.iter().map(record).collect::<Result<_, Failure>>()?;
            write_text_atomically(path, &lines)?;
            let tokens: usize = generated.texts.iter().map(|text| text.tokens.len()).sum();
            let rate = tokens as f64 / seconds.max(1e-9);
            remark!(
                "{made} texts written to {}: {tokens} tokens in {seconds:.2} s, {rate:.0} tokens/s",
                path.display()
            );
        }
        if generated.complete || !interrupt::asked() {
            return Ok(());
        }
        let kept = match (&self.out, out) {
            (_, Some(_)) => "; they are saved".to_owned(),
            (Some(older), None) => format!("; {} is left as it was", older.display()),
            (None, None) => String::new(),
        };
        Err(Failure::new(Kind::Interrupted, format!("stopped after {made} of {all} texts{kept}"))
            .advise("the same command writes the same texts again, and goes on to the end"))
    }
}
