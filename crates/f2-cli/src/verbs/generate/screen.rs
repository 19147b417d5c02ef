//! Texts on standard output, as they are made.

use std::collections::BTreeMap;

use f2_lm::decode::{Continuation, Event, Request};
use f2_lm::run::{SavedModel, TextStream};

use super::paint::Paint;
use super::prompts::Prompts;
use super::record::{Record, prompt};
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows texts in the order they were asked for; a single one token by token.
pub(super) struct Screen<'a> {
    model: &'a SavedModel,
    prompts: &'a Prompts,
    paint: Paint,
    look: Look,
    samples: usize,
    /// The number of the next text to show, and finished ones that wait for it.
    next: usize,
    waiting: BTreeMap<usize, Continuation>,
    live: Option<TextStream<'a>>,
    begun: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Text,
    Json,
    /// Everything goes to a file.
    Nothing,
}

impl<'a> Screen<'a> {
    pub(super) fn new(
        model: &'a SavedModel,
        prompts: &'a Prompts,
        request: &Request<'_>,
        [json, file]: [bool; 2],
    ) -> Self {
        let look = match (json, file) {
            (true, _) => Look::Json,
            (false, true) => Look::Nothing,
            (false, false) => Look::Text,
        };
        let alone = request.texts() == 1;
        // Beam search does not know its first token before its last.
        let live = alone && request.strategy.beam.is_none() && look == Look::Text;
        Self {
            model,
            prompts,
            paint: Paint::new(model),
            look,
            samples: request.samples,
            next: 0,
            waiting: BTreeMap::new(),
            live: live.then(|| model.vocabulary.stream()),
            begun: false,
        }
    }

    /// Whether tokens are shown as they come.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn see(&mut self, event: Event<'_>) -> Outcome {
        match (event, &mut self.live) {
            (Event::Token { token, .. }, Some(stream)) => {
                let text = stream.push(token.id)?;
                let text = self.paint.token(token.id, &text);
                let prompt = if self.begun { String::new() } else { self.prompt(0)? };
                self.begun = true;
                output::print_styled(&format!("{prompt}{text}"))
            }
            (Event::Finished(_), Some(stream)) => {
                let rest = stream.clone().finish()?;
                let rest = self.paint.plain(&rest);
                let prompt = if self.begun { String::new() } else { self.prompt(0)? };
                output::print_styled(&format!("{prompt}{rest}\n"))
            }
            (Event::Finished(text), None) => {
                self.waiting.insert(text.prompt * self.samples + text.sample, text.clone());
                self.show_ready()
            }
            _ => Ok(()),
        }
    }

    fn show_ready(&mut self) -> Outcome {
        while let Some(text) = self.waiting.remove(&self.next) {
            match self.look {
                Look::Nothing => {}
                Look::Json => {
                    let record = Record::new(&self.model.vocabulary, self.prompts, &text)?;
                    output::print(&record.line())?;
                }
                Look::Text => output::print_styled(&self.whole(&text)?)?,
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Prompt and continuation, set off from the text before.
    fn whole(&self, text: &Continuation) -> Result<String, Failure> {
        let mut shown = if self.next > 0 { "\n".to_owned() } else { String::new() };
        shown += &self.prompt(text.prompt)?;
        let mut stream = self.model.vocabulary.stream();
        for token in &text.tokens {
            shown += &self.paint.token(token.id, &stream.push(token.id)?);
        }
        Ok(shown + &self.paint.plain(&stream.finish()?) + "\n")
    }

    fn prompt(&self, number: usize) -> Result<String, Failure> {
        let prompt = prompt(&self.model.vocabulary, self.prompts, number)?;
        Ok(self.paint.plain(&prompt).into_owned())
    }
}
