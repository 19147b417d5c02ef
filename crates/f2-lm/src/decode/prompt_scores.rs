//! Log-probabilities of a prompt's own tokens, computed part by part while the prompt is fed.

use f2_engine::Device;

use super::scheduler::Scheduler;
use super::scores::Scored;
use super::sequence::Sequence;
use crate::Error;
use crate::model::Incremental;

/// How far a prompt has been scored.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptScores {
    /// Tokens of the prompt.
    length: usize,
    alternatives: usize,
    done: bool,
}

impl PromptScores {
    pub(super) fn new(length: usize, alternatives: usize) -> Self {
        Self { length, alternatives, done: false }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Feeds the next tokens of the prompt, at most `budget`, and returns the score of the token
    /// after each. The last token of the prompt is fed only when the next token is chosen.
    pub(super) fn advance<D: Device>(
        &mut self,
        scheduler: &mut Scheduler<'_, D>,
        slot: usize,
        sequence: &mut Sequence,
        budget: &mut usize,
    ) -> Result<Vec<Scored>, Error> {
        let first = sequence.next_due();
        let left = self.length - 1 - first;
        let part = left.min(*budget).min(Incremental::<D>::MOST_TOKENS);
        *budget -= part;
        self.done = part == left;
        if part == 0 {
            return Ok(Vec::new());
        }
        let model = scheduler.scores.model;
        scheduler.memory.advance_and_keep_all(model, sequence.feed_part(slot, part));
        let next = &sequence.history[first + 1..=first + part];
        let rows: Vec<u32> = (0..part as u32).collect();
        let mut scores = Vec::with_capacity(part);
        // As many rows at a time as the logits buffer holds.
        for (rows, next) in rows.chunks(scheduler.slots).zip(next.chunks(scheduler.slots)) {
            let posterior = scheduler.posterior_of(rows)?;
            let vocabulary = posterior.len() / rows.len();
            for (logs, id) in posterior.chunks(vocabulary).zip(next) {
                scores.push(Scored::new(logs, *id, self.alternatives));
            }
        }
        Ok(scores)
    }
}
