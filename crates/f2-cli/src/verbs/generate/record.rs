//! Texts as JSON lines.

use f2_lm::decode::{Continuation, StopSequences};
use f2_lm::run::{SavedModel, Vocabulary};
use serde::Serialize;

use super::prompts::Prompts;
use super::protocol::Rule;
use crate::failure::Failure;

/// One text.
#[derive(Serialize)]
pub(super) struct Record {
    prompt: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<usize>,
    /// The protocol the prompt was cut by.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    ids: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_probabilities: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class_log_probabilities: Option<Vec<f32>>,
}

impl Record {
    pub(super) fn new(
        vocabulary: &Vocabulary,
        prompts: &Prompts,
        stops: &StopSequences,
        text: &Continuation,
    ) -> Result<Self, Failure> {
        let mut ids = text.ids();
        let (written, kept) = stops.cut(vocabulary, &ids)?;
        ids.truncate(kept);
        let tokens = &text.tokens[..kept];
        // Classes are numbered from 1 in all output.
        let class = |(class, log_probability)| (class + 1, log_probability);
        let classes: Option<Vec<(u32, f32)>> =
            tokens.iter().map(|token| token.class.map(class)).collect();
        let (classes, class_log_probabilities) =
            classes.map(|each| each.into_iter().unzip()).unzip();
        Ok(Self {
            prompt: prompt(vocabulary, prompts, text.prompt)?,
            text: written,
            sample: Some(text.sample),
            protocol: prompts.protocol.map(Rule::as_str),
            ids,
            log_probabilities: Some(tokens.iter().map(|token| token.log_probability).collect()),
            classes,
            class_log_probabilities,
        })
    }

    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).expect("words and numbers have a JSON form") + "\n"
    }
}

/// A prompt as it was given, or its ids decoded.
pub(super) fn prompt(
    vocabulary: &Vocabulary,
    prompts: &Prompts,
    number: usize,
) -> Result<String, Failure> {
    match &prompts.texts[number] {
        Some(text) => Ok(text.clone()),
        None => Ok(vocabulary.decode(&prompts.ids[number])?),
    }
}

/// The references, as JSON lines.
pub(super) fn references(model: &SavedModel, prompts: &Prompts) -> Result<String, Failure> {
    let reference = |(number, ids): (usize, &Vec<u32>)| {
        let record = Record {
            prompt: prompt(&model.vocabulary, prompts, number)?,
            text: model.vocabulary.decode(ids)?,
            sample: None,
            protocol: prompts.protocol.map(Rule::as_str),
            ids: ids.clone(),
            log_probabilities: None,
            classes: None,
            class_log_probabilities: None,
        };
        Ok(record.line())
    };
    prompts.references.iter().enumerate().map(reference).collect()
}
