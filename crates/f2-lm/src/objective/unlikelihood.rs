//! Unlikelihood of tokens.

use std::ops::Range;

use f2_engine::{Device, IGNORED, Penalties};

use super::{Objective, Step};
use crate::Error;
use crate::config::UnlikelihoodConfig;

/// The lower bound of `1 - p` in the penalty of a candidate.
const FLOOR: f32 = 1e-5;

/// Token-level unlikelihood (Welleck et al., 2020): maximum likelihood, and a penalty
/// `-α ln(1 - p(c))` for every candidate c, the distinct earlier targets of the same row
/// except the current one.
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
            step.backward(step.mean(), Some(penalties))?;
        }
        Ok(())
    }
}

/// The candidates of every position. A row has one list of its distinct targets in order of
/// appearance; a position's candidates are those that appeared before it. The engine leaves the
/// position's own target out.
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
                // Positions without a target add no candidate.
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

#[cfg(test)]
mod tests {
    use f2_engine::Weighting;
    use serde_json::Value;

    use super::super::golden::{self, Positions};
    use super::*;

    /// Padding of the golden file has no target here.
    fn targets(value: &Value, pad: Option<f64>) -> Vec<u32> {
        let ids = golden::numbers(value).into_iter();
        ids.map(|id| if Some(id) == pad { IGNORED } else { id as u32 }).collect()
    }

    #[test]
    fn golden_losses_gradients_and_candidates() {
        let golden: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/ul.json")).unwrap();
        let token = &golden["token"];
        let cases = token["cases"].as_array().unwrap().iter();
        // The authors' flattened batch lets rows leak into one another; it is not implemented.
        let cases: Vec<&Value> = cases.filter(|case| case["options"]["scope"] == "row").collect();
        assert_eq!(cases.len(), 4);
        for case in cases {
            let own = |key: &str| case.get(key).unwrap_or(&token[key]);
            let options = &case["options"];
            let rows = own("targets").as_array().unwrap();
            let sequence = rows[0].as_array().unwrap().len();
            let ids = targets(own("targets"), options["pad"].as_f64());
            let vocabulary = own("logits")[0][0].as_array().unwrap().len();
            let counted = ids.iter().filter(|id| **id != IGNORED).count() as f32;
            let mut candidates = Candidates::new(vocabulary);
            candidates.collect(&ids, sequence);
            let alpha = options["alpha"].as_f64().unwrap_or(1.0) as f32;
            let penalties = candidates.penalised(alpha / counted);
            if let Some(expected) = case["candidates"].as_array() {
                for ((id, range), expected) in ids.iter().zip(penalties.ranges).zip(expected) {
                    let range = range.start as usize..range.end as usize;
                    let mut found = penalties.candidates[range].to_vec();
                    found.retain(|candidate| candidate != id);
                    found.sort_unstable();
                    assert_eq!(found, golden::ids(expected));
                }
            }
            let positions = Positions::new(own("logits"), vocabulary);
            let weights = Weighting::Uniform(1.0 / counted);
            golden::assert_loss(positions.loss(&ids, weights, Some(penalties)), case);
        }
    }
}
