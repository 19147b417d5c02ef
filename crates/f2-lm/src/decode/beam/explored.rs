//! The hypotheses that earlier iterations of a beam search have explored (iterative beam search:
//! Kulikov et al., 2019).

use std::collections::HashSet;

use super::super::Token;

/// The hypotheses of all lengths that have been in a beam, as token ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Explored {
    /// Those of earlier iterations, which this one must not repeat.
    earlier: HashSet<Vec<u32>>,
    /// Those of this iteration.
    now: Vec<Vec<u32>>,
}

impl Explored {
    /// Whether an earlier iteration explored `tokens` followed by `next`.
    pub(super) fn contains(&self, tokens: &[Token], next: u32) -> bool {
        !self.earlier.is_empty() && self.earlier.contains(&extended(tokens, next))
    }

    /// Records that this iteration explored `tokens` followed by `next`.
    pub(super) fn add(&mut self, tokens: &[Token], next: u32) {
        self.now.push(extended(tokens, next));
    }

    /// Ends the iteration: later ones must not repeat its hypotheses.
    pub(super) fn close(&mut self) {
        self.earlier.extend(self.now.drain(..));
    }
}

fn extended(tokens: &[Token], next: u32) -> Vec<u32> {
    tokens.iter().map(|token| token.id).chain([next]).collect()
}
