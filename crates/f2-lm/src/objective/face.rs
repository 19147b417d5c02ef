//! Frequency-aware cross-entropy.

use f2_engine::{Device, IGNORED, Weighting};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Objective, Step, Total};
use crate::Error;
use crate::config::{FaceConfig, FaceVariant};

/// Frequency-aware cross-entropy (Jiang et al., 2019): likelihood in which a position counts less
/// the more often its target has occurred. Counts start at zero and never decay; a batch is counted
/// before it is weighted.
#[derive(Clone, Debug)]
pub struct Face {
    variant: FaceVariant,
    /// How often each token has occurred so far, among predictions or targets.
    counts: Vec<u64>,
    /// Those of the batch in progress, not yet added to `counts`.
    fresh: Vec<u64>,
    /// The token that ends a text, which is never counted.
    end_of_text: Option<u32>,
    /// The weights of the current micro-batch.
    weights: Vec<f32>,
}

/// The state in a checkpoint: the counts in order of id, as one line of text.
#[derive(Serialize, Deserialize)]
struct State {
    counts: String,
}

impl Face {
    /// The objective over a vocabulary, with all counts zero.
    pub fn new(config: &FaceConfig, vocabulary: usize) -> Self {
        let [counts, fresh] = [(); 2].map(|()| vec![0; vocabulary]);
        Self { variant: config.variant, counts, fresh, end_of_text: None, weights: Vec::new() }
    }

    /// Adds a micro-batch to the counts.
    fn count<D: Device>(&mut self, step: &mut Step<'_, D>, index: usize) -> Result<(), Error> {
        let tokens = if self.variant.counts_predictions() {
            step.forward(index)?;
            step.predictions()?
        } else {
            step.read(index)?;
            step.ids()
        };
        self.add(tokens);
        Ok(())
    }

    fn add(&mut self, tokens: &[u32]) {
        let counted = |token: &&u32| **token != IGNORED && Some(**token) != self.end_of_text;
        for &token in tokens.iter().filter(counted) {
            self.fresh[token as usize] += 1;
        }
    }

    fn settle_fresh(&mut self) {
        for (count, fresh) in self.counts.iter_mut().zip(&mut self.fresh) {
            *count += std::mem::take(fresh);
        }
    }

    /// The weights of the current micro-batch.
    fn weigh<D: Device>(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        let share = f64::from(step.share());
        self.weights.clear();
        if self.variant.weighs_before() {
            let by_token = token_weights(&self.counts);
            let weight = |id: &u32| by_token.get(*id as usize).map_or(0.0, |w| w * share);
            self.weights.extend(step.ids().iter().map(weight).map(|weight| weight as f32));
        } else {
            let predictions = step.predictions()?.to_vec();
            let weights = position_weights(&self.counts, &predictions, step.ids());
            self.weights.extend(weights.into_iter().map(|weight| (weight * share) as f32));
        }
        Ok(())
    }
}

impl<D: Device> Objective<D> for Face {
    /// Every weight depends on the whole batch, so all of it is counted first.
    fn survey(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        for index in 0..step.micro_batches() {
            self.count(step, index)?;
        }
        Ok(())
    }

    fn settle(&mut self, total: &mut Total<'_>) -> Result<(), Error> {
        total(&mut self.fresh)?;
        self.settle_fresh();
        Ok(())
    }

    /// Starts with the last micro-batch, whose activations are still in the network: its forward
    /// pass need not be repeated.
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        for index in (0..step.micro_batches()).rev() {
            step.forward(index)?;
            self.weigh(step)?;
            step.backward(Weighting::Each(&self.weights), None)?;
        }
        Ok(())
    }

    fn expect_end_of_text(&mut self, token: u32) {
        self.end_of_text = Some(token);
    }

    fn state(&self) -> Value {
        let counts: Vec<String> = self.counts.iter().map(u64::to_string).collect();
        json!(State { counts: counts.join(" ") })
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let State { counts } = State::deserialize(state)
            .map_err(|error| format!("the counts of the objective face: {error}"))?;
        let counts: Result<Vec<u64>, _> = counts.split(' ').map(str::parse).collect();
        let counts =
            counts.map_err(|error| format!("the counts of the objective face: {error}"))?;
        if counts.len() != self.counts.len() {
            let (found, needed) = (counts.len(), self.counts.len());
            return Err(format!("it counts {found} tokens; the model's vocabulary has {needed}"));
        }
        self.counts = counts;
        Ok(())
    }
}

/// The weight of every token: `1 - count / largest count`, scaled to a mean of one. If all
/// counts are equal, all weights are one.
fn token_weights(counts: &[u64]) -> Vec<f64> {
    let largest = counts.iter().copied().max().unwrap_or(0);
    let missing: u128 = counts.iter().map(|&count| u128::from(largest - count)).sum();
    if missing == 0 {
        return vec![1.0; counts.len()];
    }
    let scale = counts.len() as f64 / missing as f64;
    counts.iter().map(|&count| (largest - count) as f64 * scale).collect()
}

/// The weight of every position: `1 + max(count of the prediction - count of the target, 0) / all
/// counts`.
fn position_weights(counts: &[u64], predictions: &[u32], ids: &[u32]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let weight = |(&prediction, &id): (&u32, &u32)| {
        if id == IGNORED {
            return 0.0;
        }
        let excess = counts[prediction as usize].saturating_sub(counts[id as usize]);
        1.0 + excess as f64 / total
    };
    predictions.iter().zip(ids).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::super::golden::{self, Positions};
    use super::*;

    fn golden() -> Value {
        serde_json::from_str(include_str!("../../tests/fixtures/face.json")).unwrap()
    }

    /// Four variants, three batches each, counts carried over from one to the next.
    #[test]
    fn golden_counts_weights_losses_and_gradients() {
        let golden = golden();
        let variants = golden["variants"].as_array().unwrap();
        assert_eq!(variants.len(), 4);
        for case in variants {
            let name = case["name"].as_str().unwrap().to_lowercase();
            let variant: FaceVariant = serde_json::from_value(json!(name)).unwrap();
            let vocabulary = case["V"].as_u64().unwrap() as usize;
            let mut face = Face::new(&FaceConfig { variant }, vocabulary);
            for step in case["steps"].as_array().unwrap() {
                check(&mut face, step, vocabulary);
            }
        }
    }

    fn check(face: &mut Face, step: &Value, vocabulary: usize) {
        let positions = Positions::new(&step["logits"], vocabulary);
        let ids = golden::ids(&step["targets"]);
        let predictions = positions.predictions(&ids);
        assert_eq!(predictions, golden::ids(&step["argmax"]));
        face.add(if face.variant.counts_predictions() { &predictions } else { &ids });
        face.settle_fresh();
        let counts: Vec<f64> = face.counts.iter().map(|&count| count as f64).collect();
        golden::assert_close(&counts, &step["counts_after"]);
        let weights = if face.variant.weighs_before() {
            let by_token = token_weights(&face.counts);
            golden::assert_close(&by_token, &step["weights"]);
            ids.iter().map(|id| by_token[*id as usize]).collect()
        } else {
            let by_position = position_weights(&face.counts, &predictions, &ids);
            golden::assert_close(&by_position, &step["weights"]);
            by_position
        };
        let share = 1.0 / ids.len() as f64;
        let weights: Vec<f32> = weights.into_iter().map(|weight| (weight * share) as f32).collect();
        golden::assert_loss(positions.loss(&ids, Weighting::Each(&weights), None), step);
    }

    /// Where the formula gives 0/0, the golden file has null: all weights are one.
    #[test]
    fn golden_weights_of_counts() {
        for case in golden()["weight_cases"].as_array().unwrap() {
            let counts: Vec<u64> = serde_json::from_value(case["counts"].clone()).unwrap();
            let expected: Vec<Option<f64>> =
                serde_json::from_value(case["weights"].clone()).unwrap();
            let expected: Vec<f64> = expected.into_iter().map(|w| w.unwrap_or(1.0)).collect();
            golden::assert_close(&token_weights(&counts), &json!(expected));
        }
    }

    /// The weights are those of the counts without it.
    #[test]
    fn the_end_of_a_text_is_not_counted() {
        let mut face = Face::new(&FaceConfig::default(), 4);
        Objective::<f2_engine::Cpu>::expect_end_of_text(&mut face, 1);
        face.add(&[1, 2, 1, 1, 0, 2, IGNORED]);
        face.settle_fresh();
        assert_eq!(face.counts, [1, 0, 2, 0]);
        assert_eq!(token_weights(&face.counts), [0.8, 1.6, 0.0, 1.6]);
    }

    #[test]
    fn counts_are_restored_or_refused() {
        let fresh = || Face::new(&FaceConfig::default(), 3);
        let mut face = fresh();
        face.add(&[2, 0, IGNORED, 2]);
        face.settle_fresh();
        let state = Objective::<f2_engine::Cpu>::state(&face);
        assert_eq!(state, json!({"counts": "1 0 2"}));
        let restore = |mut face: Face, state: &Value| {
            Objective::<f2_engine::Cpu>::restore(&mut face, state).map(|()| face.counts)
        };
        assert_eq!(restore(fresh(), &state), Ok(vec![1, 0, 2]));
        for damaged in [json!({"counts": "1 0"}), json!({"counts": "1 0 x"}), Value::Null] {
            assert!(restore(fresh(), &damaged).is_err(), "{damaged}");
        }
    }
}
