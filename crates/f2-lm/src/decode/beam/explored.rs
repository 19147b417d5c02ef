//! The hypotheses that earlier iterations of a beam search have explored (iterative beam search: Kulikov et al., 2019).

use std::collections::HashSet;

use super::super::Token;

/// The hypotheses of all lengths that were in a beam, by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Explored {
    /// Of earlier iterations: closed to this one.
    earlier: HashSet<Vec<u32>>,
    /// Of this iteration.
    now: Vec<Vec<u32>>,
}

impl Explored {
    /// Whether an earlier iteration had the hypothesis that a token leads to.
    pub(super) fn contains(&self, tokens: &[Token], next: u32) -> bool {
        !self.earlier.is_empty() && self.earlier.contains(&extended(tokens, next))
    }

    /// A hypothesis that this iteration has.
    pub(super) fn add(&mut self, tokens: &[Token], next: u32) {
        self.now.push(extended(tokens, next));
    }

    /// The iteration is over.
    pub(super) fn close(&mut self) {
        self.earlier.extend(self.now.drain(..));
    }
}

fn extended(tokens: &[Token], next: u32) -> Vec<u32> {
    tokens.iter().map(|token| token.id).chain([next]).collect()
}
