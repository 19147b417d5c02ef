//! The cost of stages, before they run.

use f2_lm::config::{ConfigLayers, TrainConfig};
use f2_lm::model::{Decoder, ModelShape};

use crate::stages::{Purpose, Subject};
use crate::{Corpora, CorpusRole, CorpusSource, Error, Model, Plan, Stages};

/// The cost of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Seconds on this device.
    pub seconds: f64,
    /// Bytes on the disk.
    pub bytes: u64,
}

/// Bytes of text `f2 prepare` reads in a second, learning included.
const PREPARED_PER_SECOND: f64 = 6e6;
/// Bytes of a token, on average.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Share of the test split.
const TEST_SHARE: f64 = 0.05;
/// The speed of decoding beside that of training: it reads every weight for few tokens.
const DECODING_SPEED: f64 = 0.15;
/// Bytes a generated token takes in JSON Lines.
const JSON_PER_TOKEN: f64 = 40.0;

/// The cost of each stage at a training speed of `speed` operations per second.
pub fn estimates(
    plan: &Plan,
    stages: &Stages,
    corpora: &Corpora,
    speed: f64,
) -> Result<Vec<Estimate>, Error> {
    let config = configuration(plan)?;
    let main = Sizes::new(plan, &config, corpora.main.bytes());
    let other = corpora.pretraining.as_ref().map_or(0, CorpusSource::bytes);
    let other = Sizes::new(plan, &config, other);
    let of = |role: CorpusRole| if role == CorpusRole::Pretraining { &other } else { &main };
    let estimate = |purpose: &Purpose| match purpose {
        Purpose::Prepare(role) => of(*role).preparing(),
        Purpose::Classes(..) => Estimate { seconds: 0.1, bytes: 20_000 },
        Purpose::Train(subject) => of(subject.corpus()).training(plan, *subject, speed),
        Purpose::Perplexity(subject) => of(subject.corpus()).perplexity(speed),
        Purpose::Generate(..) => main.generating(speed),
        Purpose::Score(_, subjects)
        | Purpose::ScoreSeed(_, _, subjects)
        | Purpose::ScoreTrials(subjects)
        | Purpose::ScoreTransfer(_, subjects) => main.scoring(plan, subjects.len()),
    };
    Ok(stages.0.iter().map(|stage| estimate(&stage.purpose)).collect())
}

/// The settings a plan trains with.
fn configuration(plan: &Plan) -> Result<TrainConfig, Error> {
    let settings = plan.training.settings.iter().map(|(key, value)| (key, value.to_string()));
    let settings: Vec<(&String, String)> = settings.collect();
    let settings = settings.iter().map(|(key, value)| (&***key, &**value, "training.settings"));
    Ok(ConfigLayers::new().preset(plan.training.preset).set(settings)?.resolve()?.config)
}

/// The numbers estimates are made of.
struct Sizes {
    /// Of the text.
    bytes: f64,
    tokens: f64,
    parameters: f64,
    /// Targets of a step, and the steps of the settings' own limit.
    tokens_per_step: f64,
    steps: f64,
    /// Tokens a model reads and writes for one set of texts.
    generated: f64,
}

impl Sizes {
    fn new(plan: &Plan, config: &TrainConfig, bytes: u64) -> Self {
        let bytes = bytes as f64;
        let tokens = bytes / BYTES_PER_TOKEN;
        let shape = ModelShape {
            model: config.model.clone(),
            positions: config.batch.sequence,
            vocabulary: plan.vocabulary,
            class_ends: Vec::new(),
        };
        let parameters = Decoder::new(shape).layout.count() as f64;
        let tokens_per_step = config.batch.tokens_per_step() as f64;
        let budget = &config.budget;
        let epochs = budget.epochs.map(|epochs| epochs * tokens / tokens_per_step);
        let steps = budget.steps.map(|steps| steps as f64);
        let window = plan.generation.window();
        let windows = (TEST_SHARE * tokens / window as f64).floor();
        let streams = plan.generation.streams_of(None) as f64;
        let texts = if windows < streams { windows } else { windows - windows % streams };
        let texts = plan.generation.texts.map_or(texts, |most| texts.min(most as f64));
        Self {
            bytes,
            tokens,
            parameters,
            tokens_per_step,
            steps: steps.or(epochs).unwrap_or(1_000.0),
            generated: texts * window as f64,
        }
    }

    fn preparing(&self) -> Estimate {
        Estimate {
            seconds: 1.0 + self.bytes / PREPARED_PER_SECOND,
            bytes: (2.0 * self.tokens) as u64 + 500_000,
        }
    }

    fn perplexity(&self, speed: f64) -> Estimate {
        let seconds = self.parameters * 2.0 * TEST_SHARE * self.tokens / speed;
        Estimate { seconds, bytes: 1_000 }
    }

    fn generating(&self, speed: f64) -> Estimate {
        Estimate {
            seconds: self.parameters * 2.0 * self.generated / (DECODING_SPEED * speed),
            bytes: (self.generated * JSON_PER_TOKEN) as u64,
        }
    }

    fn scoring(&self, plan: &Plan, models: usize) -> Estimate {
        let draws = 1.0 + plan.evaluation.bootstrap as f64;
        Estimate { seconds: models as f64 * self.generated * 2e-7 * draws, bytes: 10_000 }
    }

    fn training(&self, plan: &Plan, subject: Subject, speed: f64) -> Estimate {
        let steps = subject.steps(plan).map_or(self.steps, |steps| steps as f64);
        // Beside a plain step: candidates or predictions cost a second look, classes save most
        // of the head, and a sequence step writes a text before it learns from it.
        let factor = match subject.model() {
            Model::Mle => 1.0,
            Model::Face => 1.15,
            Model::Unlikelihood => 1.6,
            Model::UnlikelihoodSequence => 2.0,
            Model::F2 => 0.75,
        };
        Estimate {
            seconds: factor * 6.0 * self.parameters * self.tokens_per_step * steps / speed,
            // Weights and two moments, of the last checkpoint and the best one.
            bytes: (2.0 * 3.0 * 4.0 * self.parameters) as u64,
        }
    }
}
