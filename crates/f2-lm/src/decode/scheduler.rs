//! Sequences that are continued together, one token a step.
//!
//! Continuous batching: sequences join and leave between steps. Hidden states and draws do not depend
//! on the other rows of a batch, so a sequence's tokens are the same in any batch, and several
//! requests can share one scheduler.

use std::sync::Arc;

use f2_engine::Device;

use super::prompt_scores::PromptScores;
use super::sampler::{Wanted, choose};
use super::scores::{Scored, Scores};
use super::sequence::{RandomStream, Sequence};
use super::{Strategy, Token};
use crate::Error;
use crate::memory::{Purpose, available_memory, check_memory};
use crate::model::{Feed, Incremental, Model};

/// A batch of running sequences, each in a slot of the cache.
pub struct Scheduler<'a, D: Device> {
    pub(super) scores: Scores<'a, D>,
    pub(super) memory: Incremental<D>,
    /// Hidden states of some rows, `[slots, width]`, and which rows they are.
    pub(super) gathered: D::Activations,
    pub(super) picked: D::Indices,
    pub(super) slots: usize,
    running: Vec<Running>,
    /// Free slots of the cache.
    free: Vec<usize>,
    /// Tokens of prompts that one step feeds, at most.
    prefill: usize,
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
    /// How tokens are chosen, but for a beam.
    pub strategy: Arc<Strategy>,
    /// Tokens to choose, at most.
    pub new_tokens: usize,
    /// A token that ends the sequence and is not part of it.
    pub end: Option<u32>,
    /// Reports each chosen token with this many alternatives; none does not ask for the posterior.
    pub alternatives: Option<usize>,
    /// Reports the prompt's own tokens too, with the same alternatives.
    pub score_prompt: bool,
}

/// What a step found for a sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The tokens of a part of the prompt. The first token the model sees has no probability.
    Prompt {
        /// Which sequence.
        number: usize,
        /// In the order of the prompt.
        scores: Vec<Scored>,
    },
    /// The next token.
    Token {
        /// Which sequence.
        number: usize,
        /// The token; where alternatives are asked for, with the log-probability they have.
        token: Token,
        /// The most likely tokens in its place, best first.
        alternatives: Vec<(u32, f32)>,
        /// Whether it is the token that ends the sequence.
        is_end: bool,
    },
}

/// A sequence in its slot.
struct Running {
    slot: usize,
    /// The caller's number for it.
    number: usize,
    sequence: Sequence,
    stream: RandomStream,
    seed: u64,
    strategy: Arc<Strategy>,
    end: Option<u32>,
    alternatives: Option<usize>,
    /// None where the prompt is not scored, or is done.
    prompt_scores: Option<PromptScores>,
    tokens: Vec<Token>,
    /// Tokens still to be chosen.
    left: usize,
}

impl Running {
    fn is_finished(&self) -> bool {
        self.left == 0 && self.prompt_scores.is_none()
    }
}

impl<'a, D: Device> Scheduler<'a, D> {
    /// A scheduler of `slots` sequences of up to `capacity` tokens. A step feeds at most `prefill` tokens of
    /// prompts, so that sequences in progress do not wait long for those that join.
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
        Ok(Self { scores, memory, gathered, picked, slots, running, free, prefill })
    }

    /// As many slots as suit the device and take at most half of the memory that could be had, or
    /// `wanted` if they fit.
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

    /// The bytes [`new`](Self::new) asks the device for, but for a few small lists.
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
    /// Where there is no room.
    pub fn join(&mut self, joining: Joining<'_>) {
        let Joining { number, prompt, stream, seed, strategy, new_tokens, end, .. } = joining;
        let slot = self.free.pop().expect("there is room");
        let sequence = Sequence::new(prompt, self.scores.model.decoder.shape.positions);
        let alternatives = joining.alternatives;
        let prompt_scores = joining
            .score_prompt
            .then(|| PromptScores::new(prompt.len(), alternatives.unwrap_or(0)));
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
            tokens: Vec::new(),
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

    /// Removes the sequences whose numbers `leaves` holds of, complete or not.
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

    /// Feeds prompts, as far as one step does, and chooses the next token of every sequence whose
    /// prompt has been fed.
    pub fn step(&mut self) -> Result<Vec<Output>, Error> {
        let mut outputs = self.score_prompts()?;
        let due = self.feed()?;
        let tokens = self.choose(&due)?;
        let scored = self.alternatives(&due, &tokens)?;
        for ((place, _), (mut token, scored)) in due.iter().zip(tokens.into_iter().zip(scored)) {
            let running = &mut self.running[*place];
            let is_end = running.end == Some(token.id);
            let alternatives = scored.map_or_else(Vec::new, |scored| {
                token.log_probability = scored.log_probability;
                scored.alternatives
            });
            if is_end {
                running.left = 0;
            } else {
                running.sequence.history.push(token.id);
                running.tokens.push(token);
                running.left -= 1;
            }
            outputs.push(Output::Token { number: running.number, token, alternatives, is_end });
        }
        Ok(outputs)
    }

    /// Scores prompts of those that ask for it, at most `prefill` tokens in all.
    fn score_prompts(&mut self) -> Result<Vec<Output>, Error> {
        let mut outputs = Vec::new();
        let mut budget = self.prefill;
        for place in 0..self.running.len() {
            let Some(mut scores) = self.running[place].prompt_scores.take() else { continue };
            let Running { slot, number, ref mut sequence, .. } = self.running[place];
            // The sequence is moved out so that the rest of the scheduler can be borrowed.
            let mut moved = std::mem::replace(sequence, Sequence::new(&[], 1));
            let found = scores.advance(self, slot, &mut moved, &mut budget);
            self.running[place].sequence = moved;
            let found = found?;
            if !scores.is_done() {
                self.running[place].prompt_scores = Some(scores);
            }
            if !found.is_empty() {
                outputs.push(Output::Prompt { number, scores: found });
            }
        }
        Ok(outputs)
    }

    /// Feeds what is due, prompts in parts. Returns the sequences whose next token can be chosen:
    /// their places among the running ones, and the rows of their hidden states.
    fn feed(&mut self) -> Result<Vec<(usize, u32)>, Error> {
        let Self { scores, memory, running, prefill, .. } = self;
        let positions = scores.model.decoder.shape.positions;
        let (mut budget, mut due) = (*prefill, Vec::new());
        let mut feeds: Vec<Feed<'_>> = Vec::new();
        for (place, running) in running.iter_mut().enumerate() {
            if running.prompt_scores.is_some() || running.left == 0 {
                continue;
            }
            let waiting = running.sequence.due(positions);
            let part = if waiting == 1 { 1 } else { waiting.min(budget) };
            if part == 0 {
                continue;
            }
            budget -= if waiting == 1 { 0 } else { part };
            if part == waiting {
                due.push((place, feeds.len() as u32));
            }
            feeds.push(running.sequence.feed_part(running.slot, part));
        }
        if !feeds.is_empty() {
            memory.advance(scores.model, &feeds)?;
        }
        Ok(due)
    }

    /// The next token of every sequence in `due`. Those with the same strategy are chosen together.
    fn choose(&mut self, due: &[(usize, u32)]) -> Result<Vec<Token>, Error> {
        let mut groups: Vec<(Arc<Strategy>, Vec<usize>)> = Vec::new();
        for (index, (place, _)) in due.iter().enumerate() {
            let strategy = &self.running[*place].strategy;
            let same = |other: &Arc<Strategy>| Arc::ptr_eq(other, strategy) || other == strategy;
            match groups.iter_mut().find(|(other, _)| same(other)) {
                Some((_, members)) => members.push(index),
                None => groups.push((strategy.clone(), vec![index])),
            }
        }
        let mut tokens: Vec<Option<Token>> = vec![None; due.len()];
        for (strategy, members) in groups {
            let rows: Vec<u32> = members.iter().map(|index| due[*index].1).collect();
            let is_all = rows.iter().copied().eq(0..rows.len() as u32);
            if !is_all {
                self.gather(&rows);
            }
            let Self { scores, memory, gathered, running, .. } = self;
            let hidden = if is_all { memory.hidden() } else { &*gathered };
            let mut wanted: Vec<Wanted<'_>> = members
                .iter()
                .map(|index| {
                    let running = &running[due[*index].0];
                    let random = running.stream.at(running.seed, running.tokens.len());
                    Wanted { history: &running.sequence.history, random }
                })
                .collect();
            let chosen = choose(scores, &strategy, hidden, &mut wanted)?;
            for (index, token) in members.into_iter().zip(chosen) {
                tokens[index] = Some(token);
            }
        }
        Ok(tokens.into_iter().map(|token| token.expect("every row is in a group")).collect())
    }

    /// The posterior's alternatives to the chosen tokens, where they are asked for.
    fn alternatives(
        &mut self,
        due: &[(usize, u32)],
        tokens: &[Token],
    ) -> Result<Vec<Option<Scored>>, Error> {
        let mut scored: Vec<Option<Scored>> = vec![None; due.len()];
        let asked =
            due.iter().zip(tokens).enumerate().filter_map(|(index, ((place, row), token))| {
                let alternatives = self.running[*place].alternatives?;
                Some((index, *row, token.id, alternatives))
            });
        let asked: Vec<(usize, u32, u32, usize)> = asked.collect();
        if asked.is_empty() {
            return Ok(scored);
        }
        let rows: Vec<u32> = asked.iter().map(|(_, row, ..)| *row).collect();
        let posterior = self.posterior_of(&rows)?;
        let vocabulary = posterior.len() / rows.len();
        for ((index, _, id, alternatives), logs) in asked.iter().zip(posterior.chunks(vocabulary)) {
            scored[*index] = Some(Scored::new(logs, *id, *alternatives));
        }
        Ok(scored)
    }

    /// The full posterior after at most as many rows of the last pass as there are slots,
    /// `[rows, vocabulary]`.
    pub(super) fn posterior_of(&mut self, rows: &[u32]) -> Result<&mut [f32], Error> {
        self.gather(rows);
        self.scores.posterior(rows.len(), &self.gathered)
    }

    fn gather(&mut self, rows: &[u32]) {
        let model = self.scores.model;
        let width = model.decoder.shape.model.width;
        model.device.write_indices(rows, &mut self.picked);
        model.device.gather(width, &self.picked, self.memory.hidden(), &mut self.gathered);
    }
}
