//! A text as it is generated: every token in its colour, and nothing that a stop sequence may still
//! remove.

use std::collections::VecDeque;

use f2_lm::decode::StopSequences;
use f2_lm::run::{SavedModel, TextStream};

use super::paint::Paint;
use crate::failure::Failure;

/// A text as it is generated.
pub(super) struct Live<'a> {
    stops: &'a StopSequences,
    stream: TextStream<'a>,
    text: String,
    /// Bytes of `text` that were shown.
    shown: usize,
    /// Tokens that were not shown in full, and where each ends in the text.
    waiting: VecDeque<(u32, usize)>,
    /// Where the first stop sequence begins, if there is one: nothing from there on is shown.
    end: Option<usize>,
}

impl<'a> Live<'a> {
    pub(super) fn new(model: &'a SavedModel, stops: &'a StopSequences) -> Self {
        let stream = model.vocabulary.stream();
        Self { stops, stream, text: String::new(), shown: 0, waiting: VecDeque::new(), end: None }
    }

    /// Takes the next token, and returns the text that can now be shown.
    pub(super) fn push(&mut self, id: u32, paint: &Paint) -> Result<String, Failure> {
        // Beam search continues after a stop sequence.
        if self.end.is_some() {
            return Ok(String::new());
        }
        let known = self.text.len();
        self.text += &self.stream.push(id)?;
        self.waiting.push_back((id, self.text.len()));
        self.end = self.stops.find(&self.text, known);
        let certain = || self.text.len() - self.stops.held_back(&self.text);
        let end = self.end.unwrap_or_else(certain);
        Ok(self.show(end, paint))
    }

    /// Ends the text, and returns the rest of it.
    pub(super) fn finish(&mut self, paint: &Paint) -> Result<String, Failure> {
        if self.end.is_none() {
            self.text += &self.stream.clone().finish()?;
            self.end = self.stops.find(&self.text, 0);
        }
        let end = self.end.unwrap_or(self.text.len());
        let painted = self.show(end, paint);
        // Bytes that never became a character belong to no token alone.
        Ok(painted + &paint.plain(&self.text[self.shown.min(end)..end]))
    }

    /// The part of the text up to `end` that was not shown yet.
    fn show(&mut self, end: usize, paint: &Paint) -> String {
        let mut painted = String::new();
        while let Some((id, token_end)) = self.waiting.front().copied() {
            let upto = token_end.min(end).max(self.shown);
            painted += &paint.token(id, &self.text[self.shown..upto]);
            self.shown = upto;
            if token_end > end {
                break;
            }
            self.waiting.pop_front();
        }
        painted
    }
}
