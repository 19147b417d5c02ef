//! The models that wrote the texts, for their perplexities, and the embedder, whose hidden states
//! represent texts.

use std::path::{Path, PathBuf};

use clap::Args;
use f2_engine::Device;
use f2_lm::embed::{Pooling, hidden_states};
use f2_lm::run::{Pick, SavedModel};
use f2_metrics::Features;

use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::{Progress, Unit};
use crate::texts::Texts;
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::perplexity::Perplexity;

/// The flags that name models and what they were trained on.
#[derive(Args, Debug)]
pub(super) struct ModelFlags {
    /// The models that wrote the texts, in the order of their files: their perplexities on the test
    /// split of `--corpus` are computed as by `f2 perplexity`.
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "corpus", conflicts_with = "ppl")]
    pub(super) models: Vec<PathBuf>,

    /// The corpus the models were trained on: its test split for `--models`, its training split for
    /// novelty.
    #[arg(long, value_name = "CORPUS")]
    pub(super) corpus: Option<PathBuf>,

    /// The model whose hidden states represent texts in MAUVE and coherence: a run, or a folder
    /// that `f2 import` wrote.
    #[arg(long, value_name = "MODEL")]
    pub(super) embedder: Option<PathBuf>,

    #[command(flatten)]
    pub(super) device: DeviceChoice,
}

/// The hidden states of one file's texts.
pub(super) struct States {
    /// Of the last token of each text, with its prompt before it if requested; no empty texts.
    pub(super) last: Features,
    /// The means over the tokens of each prompt and of each text, if there are prompts.
    pub(super) means: Option<[Features; 2]>,
}

impl ModelFlags {
    /// No models.
    pub(super) fn none() -> Self {
        Self { models: Vec::new(), corpus: None, embedder: None, device: DeviceChoice::auto() }
    }

    /// Computes the perplexities of the models.
    pub(super) fn perplexities(&self) -> Result<Vec<f64>, Failure> {
        let Some(corpus) = &self.corpus else { return Ok(Vec::new()) };
        let mut numbers = Vec::new();
        let mut first = None;
        for model in &self.models {
            let report = Perplexity::of_model(model, corpus, self.device).compute()?;
            numbers.push(report.token_perplexity);
            if first.as_ref().is_some_and(|first| !report.is_like(first)) {
                remark!(
                    "note: {} and {} do not read the same windows of the text; their perplexities \
                     are not comparable",
                    self.models[0].display(),
                    model.display()
                );
            }
            first.get_or_insert(report);
        }
        Ok(numbers)
    }

    /// Opens the model whose hidden states represent texts.
    pub(super) fn open_embedder(&self) -> Result<Option<SavedModel>, Failure> {
        let open = |path: &PathBuf| SavedModel::open(path, Pick::Best);
        Ok(self.embedder.as_ref().map(open).transpose()?)
    }

    /// Computes the hidden states of texts. `with_prompts` puts each text after its prompt.
    pub(super) fn states(
        &self,
        model: &SavedModel,
        texts: &Texts,
        with_prompts: bool,
    ) -> Result<Option<States>, Failure> {
        let Some(strings) = &texts.strings else { return Ok(None) };
        let encode = |texts: &mut dyn Iterator<Item = String>| -> Result<Vec<Vec<u32>>, Failure> {
            texts.map(|text| Ok(model.vocabulary.encode(&text)?)).collect()
        };
        let prompts = texts.prompts.as_ref();
        let whole = encode(&mut strings.iter().enumerate().map(|(number, text)| {
            let prompt = prompts.filter(|_| with_prompts).map_or("", |prompts| &prompts[number]);
            format!("{prompt}{text}")
        }))?;
        let whole = whole.into_iter().filter(|text| !text.is_empty()).collect();
        let mut sets = vec![(whole, Pooling::Last)];
        if let Some(prompts) = prompts {
            sets.push((encode(&mut prompts.iter().cloned())?, Pooling::Mean));
            sets.push((encode(&mut strings.iter().cloned())?, Pooling::Mean));
        }
        let task = Embedding { model, sets: &sets, path: &texts.path };
        // Nothing polls for interrupts afterwards, so they end the program at once again.
        let mut points = interrupt::listen_during(|| self.device.run(task))?.into_iter();
        if interrupt::asked() {
            return Err(stopped());
        }
        let mut next = || points.next().expect("as many as there were sets");
        let last = next();
        let means = prompts.map(|_| [next(), next()]);
        Ok(Some(States { last, means }))
    }
}

fn stopped() -> Failure {
    Failure::new(Kind::Interrupted, "stopped while reading hidden states")
        .advise("the same command starts again; nothing was written")
}

/// Sets of texts to read, on whichever device.
struct Embedding<'a> {
    model: &'a SavedModel,
    sets: &'a [(Vec<Vec<u32>>, Pooling)],
    path: &'a Path,
}

impl DeviceTask for Embedding<'_> {
    type Output = Vec<Features>;

    fn run<D: Device>(self, device: D) -> Result<Vec<Features>, Failure> {
        let model = self.model.load(device)?;
        let longest = self.model.shape.positions;
        let read =
            self.sets.iter().flat_map(|(texts, _)| texts).map(|text| text.len().min(longest));
        let label = format!("reading {}", self.path.display());
        let progress = Progress::new(&label, Some(read.sum::<usize>() as u64), Unit::Tokens);
        let read = |(texts, pooling): &(Vec<Vec<u32>>, Pooling)| {
            let advance = |tokens| progress.advance(tokens);
            let rows = hidden_states(&model, texts, *pooling, &advance, &interrupt::asked)?;
            let rows = rows.ok_or_else(stopped)?;
            Features::new(self.model.shape.model.width, rows).ok_or_else(|| {
                Failure::data(format!(
                    "{}: its hidden states are not finite",
                    self.model.folder.display()
                ))
                .advise("take another checkpoint or model with `--embedder`")
            })
        };
        self.sets.iter().map(read).collect()
    }
}
