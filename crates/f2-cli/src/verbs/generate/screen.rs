//! Texts on standard output, as they are generated.

use std::collections::BTreeMap;

use f2_lm::decode::{Continuation, Event, StopSequences};
use f2_lm::run::SavedModel;

use super::Inquiry;
use super::live::Live;
use super::paint::Paint;
use super::prompts::Prompts;
use super::record::{Record, prompt};
use super::writing::Writing;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows texts in the order of the request; a single one token by token.
pub(super) struct Screen<'a> {
    model: &'a SavedModel,
    prompts: &'a Prompts,
    stops: &'a StopSequences,
    paint: &'a Paint,
    look: Look,
    samples: usize,
    /// The number of the next text to show, and finished ones that wait for it.
    next: usize,
    waiting: BTreeMap<usize, Continuation>,
    live: Option<Live<'a>>,
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
    pub(super) fn new(writing: &Writing<'a>, paint: &'a Paint) -> Self {
        let Writing { verb, inquiry, prompts, request, amateur: _ } = *writing;
        let Inquiry { model, stops, .. } = inquiry;
        let look = match (verb.json, &verb.out) {
            (true, _) => Look::Json,
            (false, Some(_)) => Look::Nothing,
            (false, None) => Look::Text,
        };
        let alone = request.texts() == 1;
        // Beam search does not know its first token before its last.
        let live = alone && request.strategy.beam.is_none() && look == Look::Text;
        Self {
            model,
            prompts,
            stops,
            paint,
            look,
            samples: request.samples,
            next: 0,
            waiting: BTreeMap::new(),
            live: live.then(|| Live::new(model, stops)),
            begun: false,
        }
    }

    /// Whether tokens are shown as they come.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn see(&mut self, event: Event<'_>) -> Outcome {
        match (event, &mut self.live) {
            (Event::Token { token, .. }, Some(live)) => {
                let text = live.push(token.id, self.paint)?;
                let prompt = if self.begun { String::new() } else { self.prompt(0)? };
                self.begun = true;
                output::print_styled(&format!("{prompt}{text}"))
            }
            (Event::Finished(_), Some(live)) => {
                let rest = live.finish(self.paint)?;
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
                    let vocabulary = &self.model.vocabulary;
                    let record = Record::new(vocabulary, self.prompts, self.stops, &text)?;
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
        let mut live = Live::new(self.model, self.stops);
        for token in &text.tokens {
            shown += &live.push(token.id, self.paint)?;
        }
        Ok(shown + &live.finish(self.paint)? + "\n")
    }

    /// A prompt; a source has its target on the next line.
    fn prompt(&self, number: usize) -> Result<String, Failure> {
        let mut prompt = prompt(&self.model.vocabulary, self.prompts, number)?;
        if self.model.separator().is_some() {
            prompt.push('\n');
        }
        Ok(self.paint.plain(&prompt).into_owned())
    }
}
