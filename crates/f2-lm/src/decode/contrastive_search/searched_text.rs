//! A text in contrastive search.

use super::super::Token;
use super::super::stop::StopWatch;
use crate::Error;

/// A text, and the hidden states of its tokens in the model's context.
#[derive(Default)]
pub(super) struct SearchedText<'a> {
    pub(super) number: usize,
    /// The first of its sequences in the cache.
    pub(super) sequence: usize,
    /// Prompt and continuation so far.
    pub(super) history: Vec<u32>,
    pub(super) tokens: Vec<Token>,
    pub(super) watch: Option<StopWatch<'a>>,
    pub(super) is_over: bool,
    /// The state after the last token.
    pub(super) state: Vec<f32>,
    /// The states of all tokens the model sees, each of length 1.
    pub(super) context: Vec<Vec<f32>>,
}

impl SearchedText<'_> {
    /// How many tokens the model has seen.
    pub(super) fn seen(&self) -> usize {
        self.context.len()
    }

    /// Whether its context must be fed: it is new, or no position is left for a candidate.
    pub(super) fn is_due(&self, positions: usize) -> bool {
        self.context.is_empty() || self.context.len() >= positions
    }

    /// Clears the context and returns the tokens to feed instead: the last ones, so many that a
    /// position is left for a candidate, or `positions / 2` if the text has outgrown the model.
    pub(super) fn window(&mut self, positions: usize) -> Vec<u32> {
        let most = if self.context.is_empty() { positions - 1 } else { positions / 2 };
        self.context.clear();
        self.history[self.history.len().saturating_sub(most)..].to_vec()
    }

    /// Appends the state after the next token to the context.
    pub(super) fn see(&mut self, state: &[f32]) {
        self.context.push(unit(state));
        self.state = state.to_vec();
    }

    /// The index of the best candidate, given their probabilities and states; the first of equally
    /// good ones.
    pub(super) fn best(&self, alpha: f64, candidates: &[(Token, f64)], states: &[&[f32]]) -> usize {
        let scores = candidates.iter().zip(states).map(|((_, probability), state)| {
            (1.0 - alpha) * probability - alpha * self.likeness(state)
        });
        let mut best = (0, f64::NEG_INFINITY);
        for (place, score) in scores.enumerate() {
            if score > best.1 {
                best = (place, score);
            }
        }
        best.0
    }

    /// The largest cosine between a state and those of the text.
    fn likeness(&self, state: &[f32]) -> f64 {
        let state = unit(state);
        let cosine = |other: &Vec<f32>| -> f64 {
            other.iter().zip(&state).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        self.context.iter().map(cosine).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Appends a token. Returns whether it belongs to the text: an end token does not.
    pub(super) fn take(&mut self, token: Token, end: Option<u32>) -> Result<bool, Error> {
        if end == Some(token.id) {
            self.is_over = true;
            return Ok(false);
        }
        self.history.push(token.id);
        self.tokens.push(token);
        if let Some(watch) = &mut self.watch {
            self.is_over = watch.ends(token.id)?;
        }
        Ok(true)
    }
}

/// A vector of length 1 in the same direction.
fn unit(state: &[f32]) -> Vec<f32> {
    let squares: f64 = state.iter().map(|value| f64::from(*value).powi(2)).sum();
    let length = squares.sqrt().max(f64::MIN_POSITIVE);
    state.iter().map(|value| (f64::from(*value) / length) as f32).collect()
}
