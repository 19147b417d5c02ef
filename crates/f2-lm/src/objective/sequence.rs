//! Unlikelihood of sequences.

use std::collections::HashMap;
use std::ops::Range;

use f2_engine::{Device, IGNORED, Moment, Penalties, Philox, Sequences, Weighting};

use super::{Objective, Step, Unlikelihood};
use crate::Error;
use crate::config::{TrainConfig, UnlikelihoodConfig};
use crate::model::{Batch, GreedyContinuation, Network, Recordings, Work};

/// The lower bound of `1 - p` in the penalty of a repeated token.
const FLOOR: f32 = 1e-20;
/// Keeps the choice of steps apart from all other draws made with the run's seed.
const PURPOSE: u32 = u32::from_le_bytes(*b"coin");

/// Sequence-level unlikelihood (Welleck et al., 2020), for a model trained with that of tokens.
/// Every step is at random a token step or a sequence step, in which the model continues prefixes
/// greedily and is penalised for every token inside an n-gram it has generated before.
///
/// The gradient of a sequence step is that of one pass over prefixes and continuations, with the
/// continuations as if they were given. This is exact: a greedy choice is constant around
/// almost every parameter, so no gradient passes through it, and a causal decoder computes the
/// same probabilities, from the same keys and values, whether tokens come one by one or all at
/// once.
pub struct SequenceUnlikelihood<D: Device> {
    config: UnlikelihoodConfig,
    token: Unlikelihood,
    continuation: GreedyContinuation<D>,
    recordings: Recordings<D>,
}

impl<D: Device> SequenceUnlikelihood<D> {
    /// The objective, with buffers for the continuations of a step.
    pub fn new(config: &TrainConfig, network: &Network<D>) -> Result<Self, Error> {
        let settings = config.unlikelihood.clone();
        let (prefix, continuation) = (settings.prefix, settings.continuation);
        let sequences = settings.continuations(config.batch.sequence);
        Ok(Self {
            token: Unlikelihood::new(&settings, network.model.decoder.shape.vocabulary),
            continuation: GreedyContinuation::new(network, sequences, prefix, continuation)?,
            recordings: Recordings::default(),
            config: settings,
        })
    }

    /// A function of seed and step alone, so that a resumed run makes the same choices.
    fn is_sequence_step(&self, moment: Moment) -> bool {
        Philox::new(moment.seed, [moment.step, 0, PURPOSE]).uniform() < self.config.sequence_rate
    }

    /// Prefixes cut from the first rows one after the other, skipping padding. `None` if the rows
    /// do not hold enough.
    fn prefixes(&self, step: &mut Step<'_, D>) -> Result<Option<Vec<u32>>, Error> {
        step.read_first()?;
        let GreedyContinuation { sequences, prefix, .. } = self.continuation;
        let row = step.sequence();
        let rows = step.inputs().chunks_exact(row).zip(step.ids().chunks_exact(row));
        let prefixes: Vec<u32> = rows
            .flat_map(|(inputs, ids)| inputs.chunks_exact(prefix).zip(ids.chunks_exact(prefix)))
            .filter(|(_, ids)| !ids.contains(&IGNORED))
            .take(sequences)
            .flat_map(|(inputs, _)| inputs)
            .copied()
            .collect();
        Ok((prefixes.len() == sequences * prefix).then_some(prefixes))
    }

    fn sequence_step(&mut self, step: &mut Step<'_, D>, prefixes: &[u32]) -> Result<(), Error> {
        let GreedyContinuation { sequences, prefix, length, .. } = self.continuation;
        let chosen = step.network.continue_greedily(prefixes, &mut self.continuation)?;
        let rows = prefixes.chunks(prefix).zip(chosen.chunks(length));
        // The last token chosen needs no position: nothing is predicted after it.
        let inputs: Vec<u32> =
            rows.flat_map(|(prefix, chosen)| [prefix, &chosen[..length - 1]].concat()).collect();
        let repeated: Vec<bool> = chosen
            .chunks(length)
            .flat_map(|chosen| repeats(chosen, self.config.ngram, self.config.last_ngram))
            .collect();
        let batch = Sequences { count: sequences, length: prefix + length - 1 };
        step.count(operations(step.network, batch, &repeated));
        if !repeated.contains(&true) {
            return Ok(());
        }
        step.network.forward(
            Batch { sequences: batch, inputs: &inputs, dropout: None },
            &mut self.recordings,
        );
        let ranges = penalised_places(batch, prefix, &repeated);
        let weight = 1.0 / chosen.len() as f32;
        let penalties = Penalties { candidates: &chosen, ranges: &ranges, weight, floor: FLOOR };
        let none = vec![IGNORED; batch.positions()];
        step.network.set_targets(&none, Weighting::Uniform(0.0), Some(penalties));
        step.network.backward(&mut self.recordings, None)
    }
}

impl<D: Device> Objective<D> for SequenceUnlikelihood<D> {
    /// With several shards, only the first one makes continuations.
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        if self.is_sequence_step(step.moment())
            && let Some(prefixes) = self.prefixes(step)?
        {
            return if step.is_in_first() { self.sequence_step(step, &prefixes) } else { Ok(()) };
        }
        self.token.accumulate(step)
    }
}

/// The penalty candidates of every position, as a range of the continuations: the token chosen
/// there, if it was a repetition.
fn penalised_places(batch: Sequences, prefix: usize, repeated: &[bool]) -> Vec<Range<u32>> {
    let length = batch.length + 1 - prefix;
    let range = |position: usize| {
        let (row, place) = (position / batch.length, position % batch.length);
        match (place + 1).checked_sub(prefix).map(|place| row * length + place) {
            Some(place) if repeated[place] => place as u32..place as u32 + 1,
            _ => 0..0,
        }
    };
    (0..batch.positions()).map(range).collect()
}

/// Which tokens lie inside an n-gram that occurred before. The published programs never examine the
/// last n-gram; with `include_last` it is examined.
fn repeats(tokens: &[u32], ngram: usize, include_last: bool) -> Vec<bool> {
    let mut repeated = vec![false; tokens.len()];
    let examined = (tokens.len() + usize::from(include_last)).saturating_sub(ngram);
    let mut seen = HashMap::new();
    for (start, gram) in tokens.windows(ngram).enumerate().take(examined) {
        if *seen.entry(gram).or_insert(start) < start {
            repeated[start..start + ngram].fill(true);
        }
    }
    repeated
}

/// Floating-point operations of the continuation (forward alone, a third of the work) and of the
/// pass that follows it.
fn operations<D: Device>(network: &Network<D>, batch: Sequences, repeated: &[bool]) -> f64 {
    let work = Work::new(&network.model.decoder, batch.length);
    let outputs = network.model.decoder.shape.vocabulary as f64 * work.per_output;
    let chosen = batch.positions() as f64 * work.trunk + repeated.len() as f64 * outputs;
    let penalised = repeated.iter().filter(|repeated| **repeated).count();
    if penalised == 0 {
        return chosen / 3.0;
    }
    chosen / 3.0 + batch.positions() as f64 * work.trunk + penalised as f64 * outputs
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::golden::{self, Positions};
    use super::*;

    fn golden() -> Value {
        serde_json::from_str(include_str!("../../tests/fixtures/ul.json")).unwrap()
    }

    #[test]
    fn golden_masks_of_repeated_ngrams() {
        let golden = golden();
        let cases = golden["ngram_masks"].as_array().unwrap();
        assert_eq!(cases.len(), 6);
        for case in cases {
            let (tokens, ngram) = (golden::ids(&case["seq"]), case["n"].as_u64().unwrap() as usize);
            for (key, include_last) in [("published", false), ("include_last", true)] {
                let expected: Vec<bool> =
                    golden::ids(&case[key]).into_iter().map(|repeated| repeated == 1).collect();
                assert_eq!(repeats(&tokens, ngram, include_last), expected, "{tokens:?} {key}");
            }
        }
    }

    #[test]
    fn golden_loss_and_gradient_of_a_sequence_step() {
        let golden = &golden()["seq"];
        let rows = golden["tokens"].as_array().unwrap();
        let ngram = golden["n"].as_u64().unwrap() as usize;
        let repeated: Vec<bool> =
            rows.iter().flat_map(|row| repeats(&golden::ids(row), ngram, false)).collect();
        let chosen = golden::ids(&golden["tokens"]);
        // A prefix of one: every position has a token that was chosen after it.
        let batch = Sequences { count: rows.len(), length: chosen.len() / rows.len() };
        let ranges = penalised_places(batch, 1, &repeated);
        let weight = 1.0 / chosen.len() as f32;
        let penalties = Penalties { candidates: &chosen, ranges: &ranges, weight, floor: FLOOR };
        let vocabulary = golden["logits"][0][0].as_array().unwrap().len();
        let positions = Positions::new(&golden["logits"], vocabulary);
        let none = vec![IGNORED; chosen.len()];
        golden::assert_loss(
            positions.loss(&none, Weighting::Uniform(0.0), Some(penalties)),
            golden,
        );
    }

    #[test]
    fn ngrams_longer_than_the_text_repeat_nothing() {
        assert_eq!(repeats(&[1, 1], 4, true), [false, false]);
        assert_eq!(repeats(&[1, 1, 1], 1, true), [false, true, true]);
    }

    #[test]
    fn only_what_follows_a_prefix_is_penalised() {
        let batch = Sequences { count: 2, length: 4 };
        let repeated = [false, true, false, true, false, true];
        let ranges = penalised_places(batch, 2, &repeated);
        assert_eq!(ranges, [0..0, 0..0, 1..2, 0..0, 0..0, 3..4, 0..0, 5..6]);
    }
}
