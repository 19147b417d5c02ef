use std::ops::Range;

use f2_engine::{Device, IGNORED, Penalties};

use super::{Objective, Step};
use crate::Error;
use crate::config::UnlikelihoodConfig;

/// The smallest `1 - p` a candidate's penalty distinguishes.
const FLOOR: f32 = 1e-5;

/// Token-level unlikelihood (Welleck et al., 2020): maximum likelihood, and a penalty
/// `-α ln(1 - p(c))` for every candidate c, the distinct earlier targets of the same row but for
/// the current one.
#[derive(Clone, Debug)]
pub struct Unlikelihood {
    alpha: f32,
    candidates: Candidates,
}

impl Unlikelihood {
    /// The objective over a vocabulary.
    pub fn new(config: &UnlikelihoodConfig, vocabulary: usize) -> Self {
        Self { alpha: config.alpha as f32, candidates: Candidates::new(vocabulary) }
    }
}

impl<D: Device> Objective<D> for Unlikelihood {
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        for index in 0..step.micro_batches() {
            step.forward(index)?;
            self.candidates.collect(step.ids(), step.sequence());
            let penalties = self.candidates.penalised(self.alpha * step.share());
            step.backward(step.mean(), Some(penalties));
        }
        Ok(())
    }
}

/// The candidates of every position. A row has one list of its distinct targets in order of
/// appearance; a position's candidates are the part of it that was there before. The engine
/// leaves the position's own target out.
#[derive(Clone, Debug)]
struct Candidates {
    tokens: Vec<u32>,
    ranges: Vec<Range<u32>>,
    /// The row every token of the vocabulary was last seen in, counted from 1.
    last_row: Vec<u32>,
}

impl Candidates {
    fn new(vocabulary: usize) -> Self {
        Self { tokens: Vec::new(), ranges: Vec::new(), last_row: vec![0; vocabulary] }
    }

    fn collect(&mut self, ids: &[u32], sequence: usize) {
        self.tokens.clear();
        self.ranges.clear();
        self.last_row.fill(0);
        for (row, ids) in (1..).zip(ids.chunks_exact(sequence)) {
            let start = self.tokens.len() as u32;
            for &id in ids {
                let end = self.tokens.len() as u32;
                // Where there is no target, there is nothing to tell from it.
                self.ranges.push(if id == IGNORED { start..start } else { start..end });
                if id != IGNORED && self.last_row[id as usize] != row {
                    self.last_row[id as usize] = row;
                    self.tokens.push(id);
                }
            }
        }
    }

    fn penalised(&self, weight: f32) -> Penalties<'_> {
        Penalties { candidates: &self.tokens, ranges: &self.ranges, weight, floor: FLOOR }
    }
}
