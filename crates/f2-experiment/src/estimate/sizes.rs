//! The sizes that estimates depend on: exact if a corpus is prepared, otherwise guessed from the
//! size of the text.

use f2_corpus::{Corpus, Split};
use f2_lm::batch::TrainingBatches;
use f2_lm::config::TrainConfig;
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::schedule::Budget;

use super::{Estimate, Speed};
use crate::stages::Subject;
use crate::{CorpusSource, Error, Plan};

/// Bytes of text that `f2 prepare` processes per second, including learning the tokenizer.
const PREPARED_PER_SECOND: f64 = 6e6;
/// Mean bytes per token.
const BYTES_PER_TOKEN: f64 = 4.0;
/// The share of the test split, and of the validation split.
const TEST_SHARE: f64 = 0.05;
/// The speed of decoding relative to training: it reads every weight for few tokens.
const DECODING_SPEED: f64 = 0.15;
/// Bytes of a generated token in JSON Lines.
const JSON_PER_TOKEN: f64 = 40.0;
/// Seconds to score a token, and to score it again in a bootstrap replicate.
const SCORED_PER_TOKEN: f64 = 7e-8;
const DRAWN_PER_TOKEN: f64 = 7e-9;

/// Sizes of a corpus, of the models trained on it and of the texts they generate.
pub(super) struct Sizes {
    /// Bytes of text.
    bytes: f64,
    /// Tokens of all splits, of the validation split and of the test split.
    tokens: f64,
    valid: f64,
    test: f64,
    parameters: f64,
    /// Floating-point operations of a step of the plain model with full batches.
    operations: f64,
    /// The mean fill of batches, 1 if they are full.
    filled: f64,
    /// The number of steps by the settings, and that between validations.
    steps: f64,
    validated_every: f64,
    /// Tokens of prefixes and continuations for one set of texts, and of continuations alone.
    generated: f64,
    written: f64,
}

impl Sizes {
    pub(super) fn new(
        plan: &Plan,
        config: &TrainConfig,
        source: &CorpusSource,
    ) -> Result<Self, Error> {
        let parameters = parameters(config, vocabulary(plan, source)?);
        let guessed = Self::guessed(source, config);
        let Tokens { bytes, all, valid, test, steps, filled } = match source {
            CorpusSource::Prepared(folder) => Tokens::of(&Corpus::open(folder)?, config, &guessed)?,
            CorpusSource::Text(_) => guessed,
        };
        let texts = texts(plan, source, test)?;
        let generation = &plan.generation;
        Ok(Self {
            bytes,
            tokens: all,
            valid,
            test,
            parameters,
            operations: operations(parameters, config),
            filled,
            steps,
            validated_every: config.evaluation.every_steps as f64,
            generated: texts * generation.window() as f64,
            written: texts * generation.continuation as f64,
        })
    }

    /// Guessed sizes of a text that is not tokenized yet.
    fn guessed(source: &CorpusSource, config: &TrainConfig) -> Tokens {
        let bytes = source.bytes() as f64;
        let all = bytes / BYTES_PER_TOKEN;
        let train = (1.0 - 2.0 * TEST_SHARE) * all;
        let budget = Budget::without_text(&config.budget, &config.batch);
        let epochs = config.budget.epochs.unwrap_or(1.0);
        let from_epochs = epochs * train / config.batch.tokens_per_step() as f64;
        Tokens {
            bytes,
            all,
            valid: TEST_SHARE * all,
            test: TEST_SHARE * all,
            steps: budget.steps.map_or(from_epochs, |steps| steps as f64),
            filled: 1.0,
        }
    }

    pub(super) fn preparing(&self) -> Estimate {
        Estimate {
            seconds: 1.0 + self.bytes / PREPARED_PER_SECOND,
            bytes: (2.0 * self.tokens) as u64 + 500_000,
        }
    }

    /// Seconds of the forward pass of this many tokens.
    fn reading(&self, tokens: f64, speed: &Speed) -> f64 {
        self.parameters * 2.0 * tokens / speed.operations
    }

    pub(super) fn perplexity(&self, speed: &Speed) -> Estimate {
        Estimate { seconds: speed.start + self.reading(self.test, speed), bytes: 1_000 }
    }

    pub(super) fn generating(&self, speed: &Speed) -> Estimate {
        Estimate {
            seconds: speed.start + self.reading(self.generated, speed) / DECODING_SPEED,
            bytes: (self.generated * JSON_PER_TOKEN) as u64,
        }
    }

    pub(super) fn scoring(&self, plan: &Plan, models: usize) -> Estimate {
        let per_token = SCORED_PER_TOKEN + DRAWN_PER_TOKEN * plan.evaluation.bootstrap as f64;
        // The references are scored too.
        Estimate { seconds: (models + 1) as f64 * self.written * per_token, bytes: 10_000 }
    }

    pub(super) fn training(&self, plan: &Plan, subject: Subject, speed: &Speed) -> Estimate {
        let steps = subject.steps(plan).map_or(self.steps, |steps| steps as f64);
        let step = self.filled * speed.step_seconds(subject.model(), self.operations);
        let validations = 1.0 + (steps / self.validated_every.max(1.0)).floor();
        Estimate {
            seconds: speed.start + steps * step + validations * self.reading(self.valid, speed),
            // Weights and two moments, for the last checkpoint and the best one.
            bytes: (2.0 * 3.0 * 4.0 * self.parameters) as u64,
        }
    }
}

/// Sizes of a corpus.
struct Tokens {
    bytes: f64,
    all: f64,
    valid: f64,
    test: f64,
    steps: f64,
    filled: f64,
}

impl Tokens {
    /// Exact sizes; a training split too short for a batch is left for `f2 train` to reject.
    fn of(corpus: &Corpus, config: &TrainConfig, guessed: &Self) -> Result<Self, Error> {
        let size = |split: Split| -> f64 {
            let splits = &corpus.manifest().splits;
            splits.iter().find(|size| size.split == split).map_or(0.0, |size| size.tokens as f64)
        };
        let train = corpus.shard(Split::Train)?;
        let batches = TrainingBatches::new(&train, &config.batch, config.seed).ok();
        let budget = batches.as_ref().map(|batches| Budget::new(&config.budget, batches));
        let steps = budget.and_then(|budget| budget.steps);
        let filled = batches.map_or(1.0, |batches| {
            let [_, length] = batches.means();
            length / config.batch.sequence as f64
        });
        Ok(Self {
            bytes: guessed.bytes,
            all: size(Split::Train) + size(Split::Valid) + size(Split::Test),
            valid: size(Split::Valid),
            test: size(Split::Test),
            steps: steps.map_or(guessed.steps, |steps| steps as f64),
            filled,
        })
    }
}

/// The vocabulary size: that of the corpus if it is prepared, otherwise the plan's.
pub(super) fn vocabulary(plan: &Plan, source: &CorpusSource) -> Result<usize, Error> {
    Ok(match source {
        CorpusSource::Prepared(folder) => Corpus::open(folder)?.manifest().vocabulary_size,
        CorpusSource::Text(_) => plan.vocabulary,
    })
}

/// The number of parameters of the plain model.
pub(super) fn parameters(config: &TrainConfig, vocabulary: usize) -> f64 {
    let shape = ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary,
        class_ends: Vec::new(),
    };
    Decoder::new(shape).layout.count() as f64
}

/// Floating-point operations of a step of the plain model with full batches.
pub(super) fn operations(parameters: f64, config: &TrainConfig) -> f64 {
    6.0 * parameters * config.batch.tokens_per_step() as f64
}

/// The number of texts per model: that of the protocol if the corpus is prepared, otherwise the
/// number of windows that fit in a test split of this size.
fn texts(plan: &Plan, source: &CorpusSource, test_tokens: f64) -> Result<f64, Error> {
    let generation = &plan.generation;
    let found = match source {
        CorpusSource::Prepared(folder) => {
            let shard = Corpus::open(folder)?.shard(Split::Test)?;
            // A test split without texts is rejected before any stage runs.
            plan.test_protocol(shard.len() as u64).cut(&shard).ok().map(|set| set.prefixes.len())
        }
        CorpusSource::Text(_) => None,
    };
    let windows = (test_tokens / generation.window() as f64).floor();
    let texts = found.map_or(windows, |texts| texts as f64);
    Ok(generation.texts.map_or(texts, |most| texts.min(most as f64)))
}
