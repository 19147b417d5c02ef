//! `f2 perplexity`: the perplexity of a text under a model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use f2_corpus::{Corpus, LONGEST_DOCUMENT, Split};
use f2_engine::Device;
use f2_experiment::PerplexityTask;
use f2_lm::Devices;
use f2_lm::batch::TokenSource;
use f2_lm::perplexity::{Contexts, Likelihood, ScoredWindows, SlidingWindows, score_on};
use f2_lm::run::SavedModel;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded::read_text_up_to;
use crate::failure::{Failure, Kind, Outcome};
use crate::progress::{Progress, Unit};
use crate::texts::open_file_or_input;
use crate::verbs::device::{DeviceChoice, SharedTask};
use crate::verbs::flags::{ModelChoice, split};
use crate::verbs::gpus::GpuChoice;
use crate::{interrupt, output};

/// Compute a model's perplexity on a corpus or a text: per token, per word, and in bits per byte.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 perplexity run corpus
  f2 perplexity run corpus --split valid --stride 256
  f2 perplexity run/checkpoints/step-500 text.txt --json
  f2 perplexity run corpus --json > run.ppl.json      # for `f2 eval --ppl`

An F² model is scored by its full posterior, so that it compares with a plain one. Windows follow
one another and the first token of each is context alone, as in the paper; with a --stride shorter
than the window they overlap and every token but the first is scored. A model trained on single
documents (`batch.order = \"documents\"`) is scored on those of the corpus, each from its start;
documents that training leaves out as too short are not scored. Of a corpus of pairs each source is
context and the targets alone are scored, counted in tokens, words and bytes. Word perplexity and
bits per byte apply the mean over the scored tokens to all tokens.")]
pub(crate) struct Perplexity {
    #[command(flatten)]
    model: ModelChoice,
    /// A corpus folder, or a text file; - for standard input.
    #[arg(value_name = "CORPUS|FILE")]
    text: PathBuf,
    /// The split of a corpus.
    #[arg(long, value_parser = split(), default_value = "test")]
    split: Split,
    /// Tokens in a window [default: the model's maximum].
    #[arg(long, value_name = "N")]
    window: Option<usize>,
    /// Tokens from one window to the next [default: the window].
    #[arg(long, value_name = "N")]
    stride: Option<usize>,
    #[command(flatten)]
    device: DeviceChoice,
    #[command(flatten)]
    gpus: GpuChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A text, and its size in tokens, words and bytes.
struct ScoredText {
    tokens: Box<dyn TokenSource>,
    words: u64,
    bytes: u64,
    /// The number of its tokens: all, or for pairs those of the targets.
    size: u64,
    /// Where contexts begin in it.
    contexts: Contexts,
}

/// The result, which `--json` prints and `f2 eval --ppl` reads.
#[derive(Serialize, Deserialize)]
pub(super) struct PerplexityReport {
    #[serde(deserialize_with = "number_or_infinity")]
    pub(super) token_perplexity: f64,
    /// `None` if it is too large for a number, or the text has no words.
    word_perplexity: Option<f64>,
    /// `None` if the text has no bytes.
    bits_per_byte: Option<f64>,
    nats_per_token: f64,
    tokens: u64,
    scored_tokens: u64,
    words: u64,
    bytes: u64,
    window: usize,
    stride: usize,
    /// Documents scored, if each is a context of its own, and the fewest tokens of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    documents: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shortest_document: Option<usize>,
    /// Pairs scored, if the corpus consists of pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<usize>,
}

/// The model, text and windows to score, on whichever devices.
struct Scoring<'a> {
    model: &'a SavedModel,
    text: &'a ScoredText,
    windows: &'a ScoredWindows,
}

impl SharedTask for Scoring<'_> {
    type Output = Likelihood;

    fn run<D: Device>(self, devices: &Devices<'_, D, Failure>) -> Result<Likelihood, Failure> {
        score_text(devices, self.model, self.text, self.windows)
    }
}

impl Perplexity {
    pub(crate) fn run(self) -> Outcome {
        let report = self.compute()?;
        output::print(&self.shown(&report))
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &PerplexityTask<PathBuf>, device: DeviceChoice) -> Self {
        Self::of_model(&task.model, &task.corpus, device)
    }

    /// The arguments for `f2 eval --models`.
    pub(super) fn of_model(model: &Path, corpus: &Path, device: DeviceChoice) -> Self {
        Self {
            model: ModelChoice::best_of(model),
            text: corpus.to_path_buf(),
            split: Split::Test,
            window: None,
            stride: None,
            device,
            gpus: GpuChoice::default(),
            json: true,
        }
    }

    /// Computes the perplexity.
    pub(super) fn compute(&self) -> Result<PerplexityReport, Failure> {
        interrupt::listen();
        let model = self.model.open()?;
        let text = self.read(&model)?;
        let sliding = SlidingWindows::new(self.window, self.stride, model.shape.positions)?;
        let windows = ScoredWindows::new(&*text.tokens, sliding, text.contexts, 0)?;
        let scoring = Scoring { model: &model, text: &text, windows: &windows };
        let likelihood = self.device.share(self.gpus, scoring)?;
        let report = PerplexityReport::new(&text, sliding, &windows, likelihood);
        report.check().map_err(|reason| {
            Failure::data(format!("{}: {reason}", model.folder.display()))
                .advise("train the model again, or take another checkpoint with `--checkpoint`")
        })?;
        Ok(report)
    }

    fn read(&self, model: &SavedModel) -> Result<ScoredText, Failure> {
        if self.text.is_dir() { self.read_corpus(model) } else { read_file(&self.text, model) }
    }

    fn read_corpus(&self, model: &SavedModel) -> Result<ScoredText, Failure> {
        let corpus = Corpus::open(&self.text)?;
        let split = self.split;
        let tokens = model.tokens(&corpus, split)?;
        let sizes = corpus.manifest().size(split);
        let sizes = sizes.map(|size| match size.targets {
            Some(targets) => (targets.words, targets.bytes, targets.tokens),
            None => (size.words, size.bytes, size.tokens),
        });
        let (words, bytes, size) = sizes.unwrap_or_default();
        if tokens.is_empty() {
            let path = self.text.display();
            return Err(Failure::data(format!("{path} has no {} split", split.name()))
                .advise("name another with `--split`, or prepare the corpus with one"));
        }
        Ok(ScoredText { tokens, words, bytes, size, contexts: model.contexts })
    }

    fn shown(&self, report: &PerplexityReport) -> String {
        if self.json {
            return report.to_json();
        }
        let known = |number: Option<f64>, decimals: usize| {
            number.map_or_else(|| "–".to_owned(), |number| format!("{number:.decimals$}"))
        };
        let [token, word] =
            [Some(report.token_perplexity), report.word_perplexity].map(|found| known(found, 3));
        let bits = known(report.bits_per_byte, 4);
        let documents = match (report.documents, report.shortest_document) {
            _ if report.pairs.is_some() => {
                format!(" of the targets of {} pairs", report.pairs.unwrap_or(0))
            }
            (Some(documents), Some(shortest)) => {
                format!(" of {documents} documents from {shortest} tokens up, each from its start")
            }
            _ => String::new(),
        };
        format!(
            "token perplexity: {token}\nword perplexity: {word}\nbits per byte: {bits}\n\
             scored: {} of {} tokens, windows of {} every {}{documents}\n",
            report.scored_tokens, report.tokens, report.window, report.stride
        )
    }
}

fn read_file(path: &Path, model: &SavedModel) -> Result<ScoredText, Failure> {
    let text = read_text_up_to(open_file_or_input(path)?, LONGEST_DOCUMENT).map_err(|error| {
        let reason = format!("cannot read {}: {error}", path.display());
        match error.kind() {
            ErrorKind::FileTooLarge => Failure::new(Kind::Device, reason)
                .advise("make it the test text of a corpus with `f2 prepare`, and name that"),
            _ => Failure::data(reason).advise("give a text in UTF-8, or a corpus folder"),
        }
    })?;
    let words = text.split_whitespace().count() as u64;
    let tokens = Box::new(model.vocabulary.encode(&text)?);
    if model.separator().is_some() {
        let words = format!("{} is a text, and the model was trained on pairs", path.display());
        return Err(Failure::data(words).advise("give a corpus of pairs: `f2 prepare --pairs`"));
    }
    // A file is one text, however short, and not a document of a corpus.
    let (size, bytes) = (tokens.len() as u64, text.len() as u64);
    Ok(ScoredText { tokens, words, bytes, size, contexts: Contexts::Text })
}

fn score_text<D: Device>(
    devices: &Devices<'_, D, Failure>,
    model: &SavedModel,
    text: &ScoredText,
    windows: &ScoredWindows,
) -> Result<Likelihood, Failure> {
    let load = |device| Ok(model.load(device)?);
    let progress = Progress::new("scoring", Some(windows.scored()), Unit::Tokens);
    let mut advance = |tokens| progress.advance(tokens);
    let stop = &interrupt::asked;
    score_on(devices, &load, &*text.tokens, windows, &mut advance, stop)?.ok_or_else(|| {
        Failure::new(Kind::Interrupted, "stopped before the end of the text")
            .advise("the same command starts again; nothing was written")
    })
}

/// JSON has no infinity: `null` stands for it.
fn number_or_infinity<'a, D: Deserializer<'a>>(value: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or(f64::INFINITY))
}

impl PerplexityReport {
    fn new(
        text: &ScoredText,
        sliding: SlidingWindows,
        windows: &ScoredWindows,
        likelihood: Likelihood,
    ) -> Self {
        let (mean, tokens) = (likelihood.mean(), text.size);
        let whole = mean * tokens as f64;
        let finite = |number: f64| number.is_finite().then_some(number);
        Self {
            token_perplexity: mean.exp(),
            word_perplexity: finite((whole / text.words as f64).exp()),
            bits_per_byte: finite(whole / text.bytes as f64 / std::f64::consts::LN_2),
            nats_per_token: mean,
            tokens,
            scored_tokens: likelihood.scored,
            words: text.words,
            bytes: text.bytes,
            window: sliding.sequence(),
            stride: sliding.stride(),
            documents: windows.documents(),
            shortest_document: match text.contexts {
                Contexts::Documents { shortest } => Some(shortest),
                Contexts::Text | Contexts::Pairs { .. } => None,
            },
            pairs: windows.pairs(),
        }
    }

    /// One line of JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers have a JSON form") + "\n"
    }

    /// Reads what `--json` printed.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let report: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        report.check().map(|()| report)
    }

    /// Refuses a value that is too large for a number, or below 1.
    fn check(&self) -> Result<(), String> {
        match (self.token_perplexity, self.nats_per_token) {
            (1.0..f64::INFINITY, _) => Ok(()),
            (f64::INFINITY, nats) => {
                Err(format!("the perplexity of {nats:.0} nats per token is too large for a number"))
            }
            (number, _) => Err(format!("{number} is below 1")),
        }
    }

    /// Whether both were computed on the same text, in the same tokens, windows and documents.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let taken = |report: &Self| {
            let sizes = [report.tokens, report.words, report.bytes];
            let documents = (report.documents, report.shortest_document, report.pairs);
            (sizes, report.window, report.stride, documents)
        };
        taken(self) == taken(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_files;

    #[test]
    fn perplexities() {
        fuzz_files("perplexities", "perplexities", "perplexity.json", |path| {
            let Ok(text) = f2_files::read_text(path) else { return };
            let Ok(report) = PerplexityReport::read(&text) else { return };
            assert!(report.token_perplexity >= 1.0 && report.token_perplexity.is_finite());
            assert!(report.is_like(&report));
        });
    }
}
