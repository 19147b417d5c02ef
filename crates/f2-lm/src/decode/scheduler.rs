//! Sequences that are continued together, one token a step.
//!
//! Continuous batching: sequences join and leave between steps. Hidden states and draws do not depend
//! on the other rows of a batch, so a sequence's tokens are the same in any batch, and several
//! requests can share one scheduler.

use f2_engine::Device;

use super::sampler::{Wanted, choose};
use super::scores::Scores;
use super::sequence::{RandomStream, Sequence};
use super::{Event, Strategy, Token};
use crate::Error;
use crate::model::{Feed, Incremental, Model};

/// A batch of running sequences, each in a slot of the cache.
pub(super) struct Scheduler<'a, D: Device> {
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    running: Vec<Running>,
    /// Free slots of the cache.
    free: Vec<usize>,
}

/// A sequence in its slot.
struct Running {
    slot: usize,
    /// The caller's number for it.
    number: usize,
    sequence: Sequence,
    stream: RandomStream,
    tokens: Vec<Token>,
    /// Tokens still to be chosen.
    left: usize,
}

impl<'a, D: Device> Scheduler<'a, D> {
    /// A scheduler of `slots` sequences of up to `capacity` tokens.
    pub(super) fn new(model: &'a Model<D>, slots: usize, capacity: usize) -> Result<Self, Error> {
        let scores = Scores::new(model, slots)?;
        let memory = Incremental::new(model, slots, capacity)?;
        Ok(Self { scores, memory, running: Vec::new(), free: (0..slots).rev().collect() })
    }

    /// Whether a sequence can join.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether no sequence is running.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Adds a sequence that is continued by at most `new_tokens` tokens.
    ///
    /// # Panics
    /// If no slot is free.
    pub(super) fn join(
        &mut self,
        number: usize,
        prompt: &[u32],
        stream: RandomStream,
        new_tokens: usize,
    ) {
        let slot = self.free.pop().expect("a slot is free");
        let sequence = Sequence::new(prompt, self.scores.model.decoder.shape.positions);
        let (tokens, left) = (Vec::new(), new_tokens);
        self.running.push(Running { slot, number, sequence, stream, tokens, left });
    }

    /// Removes a sequence that is complete, and returns its number and its tokens.
    pub(super) fn take_finished(&mut self) -> Option<(usize, Vec<Token>)> {
        let place = self.running.iter().position(|running| running.left == 0)?;
        let Running { slot, number, tokens, .. } = self.running.remove(place);
        self.free.push(slot);
        Some((number, tokens))
    }

    /// Chooses the next token of every sequence. The token `end` completes its sequence, and is not
    /// part of it.
    pub(super) fn step(
        &mut self,
        strategy: &Strategy,
        seed: u64,
        end: Option<u32>,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let Self { scores, memory, running, free: _ } = self;
        let positions = scores.model.decoder.shape.positions;
        let feeds: Vec<Feed<'_>> = running
            .iter_mut()
            .map(|running| running.sequence.feed(running.slot, positions))
            .collect();
        memory.advance(scores.model, &feeds)?;
        let mut wanted: Vec<Wanted<'_>> = running
            .iter()
            .map(|running| Wanted {
                history: &running.sequence.history,
                random: running.stream.at(seed, running.tokens.len()),
            })
            .collect();
        let chosen = choose(scores, strategy, memory.hidden(), &mut wanted)?;
        for (running, token) in running.iter_mut().zip(&chosen) {
            if end == Some(token.id) {
                running.left = 0;
                continue;
            }
            running.sequence.history.push(token.id);
            running.tokens.push(*token);
            running.left -= 1;
            observer(Event::Token { text: running.number, token });
        }
        observer(Event::Step { tokens: chosen.len() });
        Ok(())
    }
}
