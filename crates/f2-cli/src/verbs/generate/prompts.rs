//! The prompts a model continues: texts, a file, standard input, or a protocol's prefixes.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args;
use f2_corpus::END_OF_TEXT;
use f2_experiment::GenerateTask;
use f2_lm::run::SavedModel;
use serde::Deserialize;

use super::pairs;
use super::protocol::{ProtocolFlags, Rule};
use crate::failure::Failure;
use crate::texts::{is_json, line_of, lines, open_file_or_input};

#[derive(Args, Debug)]
#[command(next_help_heading = "Prompts")]
pub(super) struct PromptFlags {
    /// A text to continue, or, of a model trained on pairs, a source; can be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompts", "corpus"])]
    prompt: Vec<String>,
    /// A file of prompts: one a line, or JSON lines with `prompt`, `text` or `ids`; - for standard
    /// input, which is also read when no prompt is given.
    #[arg(long, value_name = "FILE", conflicts_with = "corpus")]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    protocol: ProtocolFlags,
    /// Refuse prompts longer than the model can see, instead of keeping their last tokens.
    #[arg(long)]
    strict: bool,
}

/// The prompts a model continues.
#[derive(Default)]
pub(super) struct Prompts {
    pub(super) ids: Vec<Vec<u32>>,
    /// As they were given; `None` if ids were.
    pub(super) texts: Vec<Option<String>>,
    /// The references after each prompt; empty without a protocol.
    pub(super) references: Vec<Vec<u32>>,
    /// The protocol that cut them from a corpus.
    pub(super) protocol: Option<Rule>,
    /// How many tokens to write, if a protocol sets it.
    pub(super) new_tokens: Option<usize>,
}

#[derive(Deserialize)]
struct JsonPrompt {
    prompt: Option<String>,
    text: Option<String>,
    ids: Option<Vec<u32>>,
}

impl PromptFlags {
    /// The prompts of a stage.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>) -> Self {
        let protocol = ProtocolFlags::of_task(task);
        Self { prompt: Vec::new(), prompts: None, protocol, strict: false }
    }

    /// The protocol that prompts are cut by, if any.
    pub(super) fn protocol(&self) -> Option<Rule> {
        self.protocol.protocol
    }

    /// The file references are written to.
    pub(super) fn references(&self) -> Option<&PathBuf> {
        self.protocol.references.as_ref()
    }

    /// Reads the prompts, for texts of `new_tokens` tokens.
    pub(super) fn read(&self, model: &SavedModel, new_tokens: usize) -> Result<Prompts, Failure> {
        let mut prompts = Prompts::default();
        if let (Some(corpus), Some(name)) = (&self.protocol.corpus, self.protocol()) {
            prompts = self.protocol.cut(corpus, name, model)?;
        } else if self.prompt.is_empty() {
            self.read_file(&mut prompts, model)?;
        } else {
            for text in &self.prompt {
                prompts.push_text(text.clone(), model)?;
            }
        }
        if prompts.ids.is_empty() {
            return Err(
                Failure::data("there are no prompts").advise("give one with `--prompt TEXT`")
            );
        }
        self.check(&mut prompts, model, new_tokens)?;
        Ok(prompts)
    }

    /// Reads a line as a prompt.
    pub(super) fn of_line(
        &self,
        line: String,
        model: &SavedModel,
        new_tokens: usize,
    ) -> Result<Prompts, Failure> {
        let mut prompts = Prompts::default();
        prompts.push_text(line, model)?;
        self.check(&mut prompts, model, new_tokens)?;
        Ok(prompts)
    }

    fn read_file(&self, prompts: &mut Prompts, model: &SavedModel) -> Result<(), Failure> {
        let stdin = PathBuf::from("-");
        let path = self.prompts.as_ref().unwrap_or(&stdin);
        if self.prompts.is_none() && std::io::stdin().is_terminal() {
            return Err(Failure::usage("there is no prompt")
                .advise("give one with `--prompt TEXT`, `--prompts FILE` or on standard input"));
        }
        let (numbers, lines) = lines(path, open_file_or_input(path)?)?;
        for (number, line) in numbers.into_iter().zip(lines) {
            if line.trim().is_empty() {
                continue;
            }
            if is_json(path) {
                prompts.push_json(&line, &line_of(path, number), model)?;
            } else {
                prompts.push_text(line, model)?;
            }
        }
        Ok(())
    }

    /// Gives empty prompts a first token and sources their separator, and reports prompts that are
    /// too long.
    fn check(
        &self,
        prompts: &mut Prompts,
        model: &SavedModel,
        new_tokens: usize,
    ) -> Result<(), Failure> {
        if let Some(separator) = model.separator() {
            return pairs::complete(prompts, model, separator, new_tokens, self.strict);
        }
        let positions = model.shape.positions;
        for (number, ids) in (1..).zip(&mut prompts.ids) {
            if ids.is_empty() {
                let start = model.vocabulary.token(END_OF_TEXT).ok_or_else(|| {
                    let reason = format!("the tokenizer has no {END_OF_TEXT} to begin with");
                    Failure::usage(format!("prompt {number} is empty, and {reason}"))
                        .advise("give at least one token, such as a space or a line break")
                })?;
                ids.push(start);
            }
            if ids.len() <= positions {
                continue;
            }
            let long = format!(
                "prompt {number} has {} tokens, more than the {positions} the model sees",
                ids.len()
            );
            if self.strict {
                return Err(Failure::usage(long)
                    .advise("shorten it, or leave --strict out to keep its last tokens"));
            }
            remark!("note: {long}; its last {positions} are kept");
        }
        Ok(())
    }
}

impl Prompts {
    fn push_text(&mut self, text: String, model: &SavedModel) -> Result<(), Failure> {
        self.ids.push(model.vocabulary.encode(&text)?);
        self.texts.push(Some(text));
        Ok(())
    }

    fn push_json(&mut self, line: &str, place: &str, model: &SavedModel) -> Result<(), Failure> {
        let advice = "each line must be an object with `prompt`, `text` or `ids`";
        let JsonPrompt { prompt, text, ids } = serde_json::from_str(line).map_err(|error| {
            let reason = error.to_string().replace(" at line 1 column", " at column");
            Failure::data(format!("{place}: {reason}")).advise(advice)
        })?;
        match (prompt.or(text), ids) {
            (Some(text), _) => self.push_text(text, model),
            (None, Some(ids)) => {
                let vocabulary = model.shape.vocabulary;
                if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
                    return Err(Failure::data(format!(
                        "{place}: there is no token {id}; the model's vocabulary has {vocabulary}"
                    ))
                    .advise("give ids of this model's tokenizer, or the text itself"));
                }
                self.ids.push(ids);
                self.texts.push(None);
                Ok(())
            }
            (None, None) => {
                let reason = format!("{place}: there is neither `prompt` nor `text` nor `ids`");
                Err(Failure::data(reason).advise(advice))
            }
        }
    }
}
