//! The response to a request: all its texts, and the JSON objects they are sent in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::request::Completion;
use super::text::Text;
use crate::http::error::Refusal;
use crate::job::{Piece, Stopped};

/// The response to a request, assembled from pieces.
pub(super) struct Answer<'a> {
    completion: &'a Completion,
    texts: Vec<Text<'a>>,
    /// The number of texts that are not complete.
    left: usize,
    id: String,
    created: u64,
}

impl<'a> Answer<'a> {
    pub(super) fn new(completion: &'a Completion) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let texts = completion.texts();
        Self {
            completion,
            texts: (0..texts).map(|text| Text::new(completion, text)).collect(),
            left: texts,
            id: format!("cmpl-{:x}-{number:x}", since.as_micros()),
            created: since.as_secs(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Adds a piece and returns the texts it belongs to. A text that reaches a stop sequence is
    /// complete at once.
    pub(super) fn take(
        &mut self,
        piece: Piece,
        stopped: &Stopped,
    ) -> Result<std::ops::Range<usize>, Refusal> {
        match piece {
            Piece::Prompt { text, scores } => {
                self.texts[text].take_prompt(scores);
                Ok(text..text + 1)
            }
            Piece::Token { text, token, alternatives, is_end } => {
                if self.texts[text].take(token, alternatives, is_end)? {
                    stopped.set(text);
                    self.left -= 1;
                }
                Ok(text..text + 1)
            }
            Piece::Finished { text } => {
                self.left -= usize::from(self.texts[text].finish.is_none());
                self.texts[text].complete()?;
                Ok(text..text + 1)
            }
            Piece::Beams(found) => {
                for continuation in found {
                    let text = continuation.prompt * self.completion.samples + continuation.sample;
                    // A text is shorter than requested only if the model ended it.
                    let text = &mut self.texts[text];
                    let shorter = continuation.tokens.len() < self.completion.new_tokens;
                    for token in continuation.tokens {
                        text.take(token, Vec::new(), false)?;
                    }
                    if shorter {
                        text.finish.get_or_insert("stop");
                    }
                    text.complete()?;
                }
                self.left = 0;
                Ok(0..self.texts.len())
            }
            Piece::Failed(message) => Err(Refusal::failed(message)),
        }
    }

    /// The complete response.
    pub(super) fn whole(&mut self) -> Result<Value, Refusal> {
        let numbered = self.texts.iter_mut().enumerate();
        let choices: Option<Vec<Value>> =
            numbered.map(|(index, text)| text.choice(index)).collect();
        let choices = choices.ok_or_else(|| Refusal::failed("a text is missing"))?;
        let mut object = self.object(&choices);
        object["usage"] = self.usage();
        Ok(object)
    }

    /// The part of a text that has not been sent; `None` if there is nothing new.
    pub(super) fn chunk(&mut self, text: usize) -> Option<Value> {
        let choice = self.texts[text].choice(text)?;
        Some(self.object(&[choice]))
    }

    /// The last object of a stream that reports the numbers of tokens.
    pub(super) fn usage_chunk(&self) -> Value {
        let mut object = self.object(&[]);
        object["usage"] = self.usage();
        object
    }

    fn object(&self, choices: &[Value]) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.completion.model.served.name,
            "seed": self.completion.seed,
            "choices": choices,
        })
    }

    fn usage(&self) -> Value {
        let prompt = self.completion.prompt_tokens();
        let chosen: usize = self.texts.iter().map(|text| text.chosen).sum();
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": chosen,
            "total_tokens": prompt + chosen,
        })
    }
}
