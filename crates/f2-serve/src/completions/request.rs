//! Parsing and checking a request for completions.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use f2_lm::decode::{StopSequences, Strategy};
use serde_json::{Map, Value};

use super::fields::{Fields, kind};
use super::strategy::strategy;
use crate::http::error::Refusal;
use crate::http::router::Shared;
use crate::{Limits, Model, Served};

/// The maximum number of alternatives reported with a token.
const MOST_LOGPROBS: usize = 20;
/// The default of `max_tokens`, as in OpenAI's API.
const USUAL_TOKENS: usize = 16;
/// The maximum number of stop sequences.
const MOST_STOPS: usize = 64;

/// A request for completions.
pub(crate) struct Completion {
    pub(super) model: Model,
    pub(super) prompts: Vec<Vec<u32>>,
    /// The prompts as texts; empty unless they are echoed.
    pub(super) prompt_texts: Vec<String>,
    pub(super) samples: usize,
    pub(super) new_tokens: usize,
    pub(super) strategy: Arc<Strategy>,
    pub(super) seed: u64,
    pub(super) stops: StopSequences,
    /// The number of alternatives to report with each token; `None` without log-probabilities.
    pub(super) logprobs: Option<usize>,
    pub(super) echo: bool,
    /// Whether to continue after the end-of-text token.
    pub(super) ignore_end: bool,
    pub(super) stream: bool,
    /// Whether a stream ends with the numbers of tokens used.
    pub(super) stream_usage: bool,
}

impl Completion {
    pub(super) fn parse(fields: &Map<String, Value>, shared: &Shared) -> Result<Self, Refusal> {
        let fields = Fields(fields);
        refuse_unsupported(fields)?;
        let model = shared.model(fields.text("model")?)?.clone();
        let echo = fields.flag("echo")?;
        let (prompts, prompt_texts) = prompts(fields, &model.served, echo)?;
        let completion = Self {
            strategy: Arc::new(strategy(fields, &model.served)?),
            model,
            prompts,
            prompt_texts,
            samples: fields.count("n")?.unwrap_or(1),
            new_tokens: fields.count("max_tokens")?.unwrap_or(USUAL_TOKENS),
            seed: fields.integer("seed")?.map_or_else(any_seed, |seed| seed as u64),
            stops: StopSequences::new(stops(fields)?),
            logprobs: logprobs(fields)?,
            echo,
            ignore_end: fields.flag("ignore_eos")?,
            stream: fields.flag("stream")?,
            stream_usage: stream_usage(fields)?,
        };
        completion.check(&shared.limits)?;
        Ok(completion)
    }

    fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        let Self { samples, new_tokens, strategy, .. } = self;
        if *samples == 0 {
            return Err(Refusal::bad("n", "`n` must be at least 1"));
        }
        let texts = self.prompts.len().saturating_mul(*samples);
        if texts > limits.texts {
            let message = format!("{texts} texts are requested, more than {}", limits.texts);
            return Err(Refusal::bad("n", message));
        }
        if *new_tokens > limits.new_tokens {
            let message = format!("`max_tokens` is {new_tokens}, more than {}", limits.new_tokens);
            return Err(Refusal::bad("max_tokens", message));
        }
        if *new_tokens == 0 && !self.echo {
            let message = "`max_tokens` of 0 leaves nothing to answer without `echo`";
            return Err(Refusal::bad("max_tokens", message));
        }
        if !strategy.is_search() {
            return Ok(());
        }
        let name = if strategy.beam.is_some() { "beam search" } else { "contrastive search" };
        if self.logprobs.is_some() {
            let message = format!("{name} reports no log-probabilities");
            return Err(Refusal::bad("logprobs", message));
        }
        if let Some(beam) = strategy.beam.as_ref().filter(|beam| *samples > beam.texts()) {
            let message = format!("{} beams cannot give {samples} texts", beam.texts());
            return Err(Refusal::bad("n", message));
        }
        if *new_tokens == 0 {
            let message = format!("{name} needs tokens to choose");
            return Err(Refusal::bad("max_tokens", message));
        }
        Ok(())
    }

    /// The number of texts requested in all.
    pub(super) fn texts(&self) -> usize {
        self.prompts.len() * self.samples
    }

    pub(super) fn prompt_tokens(&self) -> usize {
        self.prompts.iter().map(Vec::len).sum()
    }
}

/// Refuses options of OpenAI's API that would change the texts but are not supported.
fn refuse_unsupported(fields: Fields<'_>) -> Result<(), Refusal> {
    let refused = |name: &'static str, advice: &str| {
        Err(Refusal::bad(name, format!("`{name}` is not supported; {advice}")))
    };
    if fields.text("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
        return refused("suffix", "these models continue texts and do not fill gaps in them");
    }
    for name in ["frequency_penalty", "presence_penalty"] {
        if fields.number(name)?.is_some_and(|penalty| penalty != 0.0) {
            return refused(name, "use `repetition_penalty` or `no_repeat_ngram_size`");
        }
    }
    if fields
        .any("logit_bias")
        .is_some_and(|bias| bias.as_object().is_none_or(|map| !map.is_empty()))
    {
        return refused("logit_bias", "leave it out");
    }
    let samples = fields.count("n")?.unwrap_or(1);
    if fields.count("best_of")?.is_some_and(|best| best != samples) {
        return refused("best_of", "use `num_beams` for likely texts");
    }
    Ok(())
}

/// The prompts' ids, and if they are echoed their texts.
fn prompts(
    fields: Fields<'_>,
    served: &Served,
    echo: bool,
) -> Result<(Vec<Vec<u32>>, Vec<String>), Refusal> {
    let value = fields.any("prompt").ok_or_else(|| bad("`prompt` is missing"))?;
    let is_list_of_prompts = |list: &[Value]| !list.first().is_some_and(Value::is_number);
    let given: Vec<&Value> = match value {
        Value::Array(list) if is_list_of_prompts(list) => list.iter().collect(),
        one => vec![one],
    };
    if given.is_empty() {
        return Err(bad("`prompt` is an empty list; give at least one text"));
    }
    let (mut all, mut texts) = (Vec::new(), Vec::new());
    for (number, prompt) in given.into_iter().enumerate() {
        let (ids, text) = one_prompt(prompt, number, served)?;
        let positions = served.saved.shape.positions;
        if ids.is_empty() {
            return Err(bad(format!("prompt {number} is empty; give at least one token")));
        }
        if ids.len() > positions {
            let message = format!(
                "prompt {number} has {} tokens, more than the {positions} the model sees",
                ids.len()
            );
            return Err(bad(message).code("context_length_exceeded"));
        }
        if echo {
            texts.push(match text {
                Some(text) => text.to_owned(),
                None => served.vocabulary().decode(&ids).map_err(|error| failed(&error))?,
            });
        }
        all.push(ids);
    }
    Ok((all, texts))
}

/// A prompt's ids, and its text if it was given as text.
fn one_prompt<'a>(
    prompt: &'a Value,
    number: usize,
    served: &Served,
) -> Result<(Vec<u32>, Option<&'a str>), Refusal> {
    match prompt {
        Value::String(text) => {
            Ok((served.vocabulary().encode(text).map_err(|error| failed(&error))?, Some(text)))
        }
        Value::Array(list) => {
            let ids = list.iter().map(|id| {
                token_id(id, served).map_err(|reason| bad(format!("prompt {number}: {reason}")))
            });
            Ok((ids.collect::<Result<_, _>>()?, None))
        }
        other => Err(bad(format!(
            "`prompt` must be a string, a list of strings, a list of token ids or a list of such \
             lists, not {}",
            kind(other)
        ))),
    }
}

/// A token id of the model.
pub(crate) fn token_id(value: &Value, served: &Served) -> Result<u32, String> {
    let vocabulary = served.saved.shape.vocabulary;
    let id = value.as_u64().ok_or_else(|| format!("{} is no token id", kind(value)))?;
    if id >= vocabulary as u64 {
        return Err(format!("there is no token {id}; the vocabulary has {vocabulary}"));
    }
    Ok(id as u32)
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::bad("prompt", message)
}

fn failed(error: &f2_corpus::Error) -> Refusal {
    Refusal::failed(error.to_string())
}

fn stops(fields: Fields<'_>) -> Result<Vec<String>, Refusal> {
    let stops = fields.texts("stop")?;
    if stops.len() > MOST_STOPS {
        return Err(Refusal::bad("stop", format!("more than {MOST_STOPS} stop sequences")));
    }
    Ok(stops)
}

fn logprobs(fields: Fields<'_>) -> Result<Option<usize>, Refusal> {
    // Some clients send `false` to turn them off.
    if fields.any("logprobs") == Some(&Value::Bool(false)) {
        return Ok(None);
    }
    let logprobs = fields.count("logprobs")?;
    if logprobs.is_some_and(|count| count > MOST_LOGPROBS) {
        let message = format!("`logprobs` must be at most {MOST_LOGPROBS}");
        return Err(Refusal::bad("logprobs", message));
    }
    Ok(logprobs)
}

fn stream_usage(fields: Fields<'_>) -> Result<bool, Refusal> {
    match fields.any("stream_options") {
        None => Ok(false),
        Some(Value::Object(options)) => Fields(options).flag("include_usage"),
        Some(_) => Err(Refusal::bad("stream_options", "`stream_options` must be an object")),
    }
}

/// A random seed, small enough for clients that store numbers as doubles.
fn any_seed() -> u64 {
    RandomState::new().hash_one("seed") >> 32
}
