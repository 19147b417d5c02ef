//! One text of a response, assembled from tokens: its characters, its log-probabilities, and its
//! end.

use f2_lm::decode::{Scored, Token};
use f2_lm::run::TextStream;
use serde_json::{Map, Value, json};

use super::request::Completion;
use crate::Served;
use crate::http::error::Refusal;

/// The lowest log-probability that is written: JSON has no infinity.
const LOWEST: f32 = -9999.0;

/// An entry in the lists of log-probabilities.
struct Entry {
    id: u32,
    /// `None` for the first token of a prompt.
    log_probability: Option<f32>,
    alternatives: Vec<(u32, f32)>,
    class: Option<(u32, f32)>,
    /// The number of characters before it.
    offset: usize,
}

/// A text assembled from tokens.
pub(super) struct Text<'a> {
    completion: &'a Completion,
    served: &'a Served,
    /// Decodes the tokens of the echoed prompt, then, separately, those of the continuation.
    pieces: TextStream<'a>,
    characters: String,
    chars: usize,
    /// The number of bytes of the echoed prompt, which is not searched for stop sequences.
    echoed: usize,
    entries: Vec<Entry>,
    /// How much has been sent: bytes, characters and entries.
    sent: (usize, usize, usize),
    /// The number of tokens chosen for it, including the one that ended it.
    pub(super) chosen: usize,
    ended: bool,
    /// Why it is complete, as in OpenAI's API.
    pub(super) finish: Option<&'static str>,
    /// Whether `finish` was sent: tokens that arrive later are ignored.
    closed: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(completion: &'a Completion, number: usize) -> Self {
        let served = &*completion.model.served;
        let prompt = number / completion.samples;
        let text = completion.prompt_texts.get(prompt).cloned().unwrap_or_default();
        let mut this = Self {
            completion,
            served,
            pieces: served.vocabulary().stream(),
            chars: 0,
            echoed: text.len(),
            characters: text,
            entries: Vec::new(),
            sent: (0, 0, 0),
            chosen: 0,
            ended: false,
            finish: None,
            closed: false,
        };
        if completion.echo && completion.logprobs.is_some() {
            this.echo(completion.prompts[prompt][0], None, Vec::new());
        }
        this
    }

    /// Adds a token of the prompt to the lists.
    fn echo(&mut self, id: u32, log_probability: Option<f32>, alternatives: Vec<(u32, f32)>) {
        let class = None;
        let offset = self.chars;
        self.entries.push(Entry { id, log_probability, alternatives, class, offset });
        self.chars += self.pieces.push(id).unwrap_or_default().chars().count();
    }

    /// Adds the scores of further tokens of the prompt.
    pub(super) fn take_prompt(&mut self, scores: Vec<Scored>) {
        for Scored { id, log_probability, alternatives } in scores {
            self.echo(id, Some(log_probability), alternatives);
        }
    }

    /// Adds the next token; returns whether it completed a stop sequence.
    pub(super) fn take(
        &mut self,
        token: Token,
        alternatives: Vec<(u32, f32)>,
        is_end: bool,
    ) -> Result<bool, Refusal> {
        if self.finish.is_some() {
            return Ok(false);
        }
        if self.chosen == 0 {
            self.pieces = self.served.vocabulary().stream();
            self.chars = self.characters.chars().count();
        }
        self.chosen += 1;
        if self.completion.logprobs.is_some() {
            let Token { id, log_probability, class } = token;
            let (log_probability, offset) = (Some(log_probability), self.chars);
            self.entries.push(Entry { id, log_probability, alternatives, class, offset });
        }
        if is_end {
            self.ended = true;
            return Ok(false);
        }
        let piece =
            self.pieces.push(token.id).map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(self.append(&piece))
    }

    /// Completes the text after its last token.
    pub(super) fn complete(&mut self) -> Result<(), Refusal> {
        if self.finish.is_none() && self.chosen > 0 {
            let rest = self.pieces.clone().finish();
            self.append(&rest.map_err(|error| Refusal::failed(error.to_string()))?);
        }
        let reason = if self.ended { "stop" } else { "length" };
        self.finish.get_or_insert(reason);
        Ok(())
    }

    /// Appends characters; returns whether they completed a stop sequence, which is cut off.
    fn append(&mut self, piece: &str) -> bool {
        let known = self.characters.len() - self.echoed;
        self.characters.push_str(piece);
        self.chars += piece.chars().count();
        let Some(place) = self.completion.stops.find(&self.characters[self.echoed..], known) else {
            return false;
        };
        self.characters.truncate(self.echoed + place);
        self.chars = self.characters.chars().count();
        let (chars, sent) = (self.chars, self.sent.2);
        let mut number = 0;
        self.entries.retain(|entry| {
            number += 1;
            number <= sent || entry.offset < chars
        });
        self.finish = Some("stop");
        true
    }

    /// The part of the text that has not been sent and can no longer change; `None` if it is empty.
    pub(super) fn choice(&mut self, index: usize) -> Option<Value> {
        if self.closed {
            return None;
        }
        let finished = self.finish.is_some();
        let continuation = &self.characters[self.echoed..];
        let held = if finished { 0 } else { self.completion.stops.held_back(continuation) };
        let end = self.characters.len() - held;
        let (bytes, chars, entries) = self.sent;
        let fresh = self.characters.get(bytes..end).unwrap_or_default().to_owned();
        let chars = chars + fresh.chars().count();
        let shown = self.entries[entries..].iter();
        let count = shown.take_while(|entry| finished || entry.offset < chars).count();
        if fresh.is_empty() && count == 0 && !finished {
            return None;
        }
        self.closed = finished;
        self.sent = (end.max(bytes), chars, entries + count);
        let entries = &self.entries[entries..entries + count];
        let mut choice = json!({
            "index": index,
            "text": fresh,
            "logprobs": null,
            "finish_reason": self.finish,
        });
        if self.completion.logprobs.is_some() {
            choice["logprobs"] = self.logprobs(entries);
            choice["f2"] = self.details(entries);
        }
        Some(choice)
    }

    fn logprobs(&self, entries: &[Entry]) -> Value {
        let log = |log: f32| Value::from(log.max(LOWEST));
        let top = |entry: &Entry| {
            let Some(own) = entry.log_probability else { return Value::Null };
            // The token itself is always listed, with the same number as in `token_logprobs`.
            let mut top = Map::new();
            for (id, alternative) in entry.alternatives.iter().copied().chain([(entry.id, own)]) {
                top.entry(self.served.token_name(id)).or_insert_with(|| log(alternative));
            }
            Value::Object(top)
        };
        let name = |entry: &Entry| self.served.token_name(entry.id);
        json!({
            "tokens": entries.iter().map(name).collect::<Vec<_>>(),
            "token_logprobs": entries.iter().map(|entry| entry.log_probability.map(log)).collect::<Vec<_>>(),
            "top_logprobs": entries.iter().map(top).collect::<Vec<_>>(),
            "text_offset": entries.iter().map(|entry| entry.offset).collect::<Vec<_>>(),
        })
    }

    /// Details that other APIs do not have: ids, frequency bands and classes.
    fn details(&self, entries: &[Entry]) -> Value {
        let bands = self.served.bands.as_ref();
        let band = |entry: &Entry| bands.map(|bands| bands.band(entry.id));
        // Counted from 1, as in `f2 generate`.
        let class = |entry: &Entry| entry.class.map(|(class, _)| class + 1);
        let class_log = |entry: &Entry| entry.class.map(|(_, log)| log.max(LOWEST));
        json!({
            "ids": entries.iter().map(|entry| entry.id).collect::<Vec<_>>(),
            "bands": entries.iter().map(band).collect::<Vec<_>>(),
            "classes": entries.iter().map(class).collect::<Vec<_>>(),
            "class_logprobs": entries.iter().map(class_log).collect::<Vec<_>>(),
        })
    }
}
