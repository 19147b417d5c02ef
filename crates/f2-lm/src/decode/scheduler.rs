//! Sequences that are continued together, one token per `step`.
//!
//! Continuous batching: sequences join and leave between steps. Hidden states and draws do not
//! depend on the other rows of a batch, so a sequence's tokens are the same in any batch, and
//! several requests can share one scheduler.

use std::sync::Arc;

use f2_engine::Device;

use super::contrast::Amateur;
use super::prompt_scores::PromptScores;
use super::scores::{Scored, Scores};
use super::sequence::{RandomStream, Running, Sequence};
use super::{ErrorDiffusion, Mirostat, Strategy, Token};
use crate::Error;
use crate::memory::{Purpose, available_memory, check_memory};
use crate::model::{Incremental, Model};

/// A batch of running sequences, each in a slot of the cache.
pub struct Scheduler<'a, D: Device> {
    pub(super) scores: Scores<'a, D>,
    pub(super) memory: Incremental<D>,
    /// `None` unless decoding is contrastive.
    pub(super) amateur: Option<Amateur<'a, D>>,
    /// Hidden states of some rows, `[slots, width]`, and which rows they are.
    pub(super) gathered: D::Activations,
    pub(super) picked: D::Indices,
    pub(super) slots: usize,
    pub(super) running: Vec<Running>,
    /// Free slots of the cache.
    free: Vec<usize>,
    /// The most prompt tokens that one step feeds.
    pub(super) prefill: usize,
}

/// A sequence that joins, and how it is continued.
#[derive(Clone, Debug)]
pub struct Joining<'p> {
    /// The caller's number for it.
    pub number: usize,
    /// Token ids to continue, at least one.
    pub prompt: &'p [u32],
    /// Its randomness, together with the seed.
    pub stream: RandomStream,
    /// Decides every draw.
    pub seed: u64,
    /// How tokens are chosen; it must not be a search.
    pub strategy: Arc<Strategy>,
    /// Tokens to choose, at most.
    pub new_tokens: usize,
    /// A token that ends the sequence and is not part of it.
    pub end: Option<u32>,
    /// Reports each chosen token with this many alternatives; with `None` the posterior is not
    /// computed.
    pub alternatives: Option<usize>,
    /// Also reports the prompt's own tokens, with as many alternatives.
    pub score_prompt: bool,
}

/// The result of a step for one sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The scores of a part of the prompt's tokens. The first token the model sees has none.
    Prompt {
        /// The caller's number of the sequence.
        number: usize,
        /// In the order of the prompt.
        scores: Vec<Scored>,
    },
    /// The next token.
    Token {
        /// The caller's number of the sequence.
        number: usize,
        /// The token; if alternatives are requested, with a log-probability from the same
        /// posterior.
        token: Token,
        /// The most likely tokens in its place, best first.
        alternatives: Vec<(u32, f32)>,
        /// Whether it is the token that ends the sequence.
        is_end: bool,
    },
}

impl<'a, D: Device> Scheduler<'a, D> {
    /// A scheduler of `slots` sequences of up to `capacity` tokens. A step feeds at most `prefill`
    /// tokens of prompts, and as many of prompts that are scored, so that sequences in progress do
    /// not wait long for those that join.
    pub fn new(
        model: &'a Model<D>,
        slots: usize,
        capacity: usize,
        prefill: usize,
    ) -> Result<Self, Error> {
        let scores = Scores::new(model, slots)?;
        let memory = Incremental::new(model, slots, capacity)?;
        let gathered = model.device.activations(slots * model.decoder.shape.model.width)?;
        let picked = model.device.indices(slots)?;
        let free = (0..slots).rev().collect();
        let running = Vec::new();
        Ok(Self { scores, memory, amateur: None, gathered, picked, slots, running, free, prefill })
    }

    /// Contrasts the model with an amateur that sees the same tokens.
    pub(super) fn against(mut self, amateur: &'a Model<D>, capacity: usize) -> Result<Self, Error> {
        self.amateur = Some(Amateur::new(amateur, self.slots, capacity)?);
        Ok(self)
    }

    /// The number of slots: `wanted`, or as many as suit the device and take at most half of the
    /// available memory. Fails if they do not fit.
    pub fn fitting_slots(
        model: &Model<D>,
        capacity: usize,
        wanted: Option<usize>,
    ) -> Result<usize, Error> {
        let bytes = |slots: usize| Self::bytes(model, slots, capacity);
        let mut slots = wanted.unwrap_or(D::SEQUENCES).max(1);
        if wanted.is_none() {
            let most = available_memory(&model.device).unwrap_or(u64::MAX) / 2;
            while slots > 1 && bytes(slots) > most {
                slots /= 2;
            }
        }
        check_memory(&model.device, Purpose::Generation, bytes(slots))?;
        Ok(slots)
    }

    /// The bytes [`new`](Self::new) allocates on the device, except for a few small lists.
    pub(super) fn bytes(model: &Model<D>, slots: usize, capacity: usize) -> u64 {
        let decoder = &model.decoder;
        let memory = Incremental::<D>::bytes(decoder, slots, capacity);
        memory.saturating_add(Scores::<D>::bytes(decoder, slots))
    }

    /// Whether a sequence can join.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many sequences are running.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Adds a sequence.
    ///
    /// # Panics
    /// If there is no room.
    pub fn join(&mut self, joining: Joining<'_>) {
        let Joining { number, prompt, stream, seed, strategy, new_tokens, end, .. } = joining;
        let slot = self.free.pop().expect("there is room");
        let sequence = Sequence::new(prompt, self.scores.model.decoder.shape.positions);
        let alternatives = joining.alternatives;
        let prompt_scores = joining
            .score_prompt
            .then(|| PromptScores::new(prompt.len(), alternatives.unwrap_or(0)));
        let limit = strategy.mirostat.as_ref().map(Mirostat::start);
        let diffusion = strategy.deterministic.then(|| ErrorDiffusion::new(stream));
        self.running.push(Running {
            slot,
            number,
            sequence,
            stream,
            seed,
            strategy,
            end,
            alternatives,
            prompt_scores,
            diffusion,
            tokens: Vec::new(),
            limit,
            left: new_tokens,
        });
    }

    /// Removes a sequence that is complete, and returns its number and its tokens.
    pub fn take_finished(&mut self) -> Option<(usize, Vec<Token>)> {
        let place = self.running.iter().position(Running::is_finished)?;
        let Running { slot, number, tokens, .. } = self.running.remove(place);
        self.free.push(slot);
        Some((number, tokens))
    }

    /// Ends a sequence at its current length.
    pub fn end(&mut self, number: usize) {
        for running in self.running.iter_mut().filter(|running| running.number == number) {
            (running.left, running.prompt_scores) = (0, None);
        }
    }

    /// Removes the sequences for whose numbers `leaves` returns true, complete or not.
    pub fn remove(&mut self, mut leaves: impl FnMut(usize) -> bool) {
        let free = &mut self.free;
        self.running.retain(|running| {
            let stays = !leaves(running.number);
            if !stays {
                free.push(running.slot);
            }
            stays
        });
    }
}
