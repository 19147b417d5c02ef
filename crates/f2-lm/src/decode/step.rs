//! One step of a [`Scheduler`]: prompts are fed in parts, and every sequence whose prompt has been
//! fed gets its next token.

use std::sync::Arc;

use f2_engine::Device;

use super::sampler::{Wanted, choose};
use super::scheduler::{Output, Scheduler};
use super::scores::Scored;
use super::sequence::{Running, Sequence};
use super::{Strategy, Token};
use crate::Error;
use crate::model::Feed;

impl<D: Device> Scheduler<'_, D> {
    /// Feeds the next part of the prompts, and chooses the next token of every sequence whose
    /// prompt has been fed.
    pub fn step(&mut self) -> Result<Vec<Output>, Error> {
        let mut outputs = self.score_prompts()?;
        let due = self.feed()?;
        let tokens = self.choose(&due)?;
        let scored = self.alternatives(&due, &tokens)?;
        for ((place, _), (mut token, scored)) in due.iter().zip(tokens.into_iter().zip(scored)) {
            let running = &mut self.running[*place];
            // Not from the posterior's log-probability, which differs in the last digits:
            // requesting alternatives must not change the text.
            running.limit = running.limit_after(&token);
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

    /// Scores the prompts of sequences that request it, at most `prefill` tokens in all.
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

    /// Feeds the tokens that are due, prompts in parts. Returns the sequences whose next token can
    /// be chosen: their places among the running ones, and the rows of their hidden states.
    fn feed(&mut self) -> Result<Vec<(usize, u32)>, Error> {
        let Self { scores, memory, amateur, running, prefill, .. } = self;
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
            if let Some(amateur) = amateur {
                amateur.advance(&feeds)?;
            }
        }
        Ok(due)
    }

    /// Chooses the next token of every sequence in `due`, together for those with the same
    /// strategy.
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
            let Self { scores, memory, amateur, gathered, running, .. } = self;
            let hidden = if is_all { memory.hidden() } else { &*gathered };
            // Members are in the order of their places.
            let mut members_due = members.iter().map(|index| due[*index]).peekable();
            let mut wanted: Vec<Wanted<'_>> = running
                .iter_mut()
                .enumerate()
                .filter_map(|(place, running)| {
                    let (_, row) = members_due.next_if(|(member, _)| *member == place)?;
                    let amateur = amateur.as_ref().map(|amateur| amateur.after(row as usize));
                    Some(running.wanted(amateur))
                })
                .collect();
            let chosen = choose(scores, &strategy, hidden, &mut wanted)?;
            for (index, token) in members.into_iter().zip(chosen) {
                tokens[index] = Some(token);
            }
        }
        Ok(tokens.into_iter().map(|token| token.expect("every row is in a group")).collect())
    }

    /// The posterior's alternatives to the chosen tokens, for the sequences that request them.
    fn alternatives(
        &mut self,
        due: &[(usize, u32)],
        tokens: &[Token],
    ) -> Result<Vec<Option<Scored>>, Error> {
        let mut scored: Vec<Option<Scored>> = vec![None; due.len()];
        let requested =
            due.iter().zip(tokens).enumerate().filter_map(|(index, ((place, row), token))| {
                let alternatives = self.running[*place].alternatives?;
                Some((index, *row, token.id, alternatives))
            });
        let requested: Vec<(usize, u32, u32, usize)> = requested.collect();
        if requested.is_empty() {
            return Ok(scored);
        }
        let rows: Vec<u32> = requested.iter().map(|(_, row, ..)| *row).collect();
        let posterior = self.posterior_of(&rows)?;
        let vocabulary = posterior.len() / rows.len();
        for ((index, _, id, alternatives), logs) in
            requested.iter().zip(posterior.chunks(vocabulary))
        {
            scored[*index] = Some(Scored::new(logs, *id, *alternatives));
        }
        Ok(scored)
    }

    /// The full posterior, `[rows, vocabulary]`, for at most as many rows of the last pass as there
    /// are slots.
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
