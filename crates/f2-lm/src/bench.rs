//! How fast a configuration trains, on random tokens with the frequencies of text.

use std::time::Instant;

use f2_engine::{Device, Philox};

use crate::Error;
use crate::batch::TrainingBatches;
use crate::config::TrainConfig;
use crate::model::{Decoder, ModelShape};
use crate::train::Trainer;

/// Distinct batches; the steps cycle through them.
const BATCHES: usize = 4;
/// Steps before the clock starts: caches fill, threads wake.
const WARM_UP: usize = 2;
const PURPOSE: u32 = u32::from_le_bytes(*b"zipf");

/// The speed of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The median time of a step, including clipping and the optimiser.
    pub seconds_per_step: f64,
    /// Targets predicted per second at that pace.
    pub tokens_per_second: f64,
    /// Floating-point operations per second over the device's measured peak.
    pub share_of_peak: f64,
    /// The loss of the last step, in nats.
    pub loss: f64,
}

/// Trains for `steps` steps and times each. `classes` is the number of frequency classes of an
/// F² head, each with an equal share of the tokens.
pub fn measure<D: Device>(
    device: D,
    config: &TrainConfig,
    vocabulary: usize,
    classes: usize,
    steps: usize,
) -> Result<Measurement, Error> {
    let class_ends = if config.objective.name.needs_classes() {
        zipf_class_ends(vocabulary, classes)
    } else {
        Vec::new()
    };
    let shape = ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary,
        class_ends,
    };
    let mut trainer = Trainer::new(device, Decoder::new(shape), config)?;
    let tokens = BATCHES * config.batch.tokens_per_step() + 1;
    let text = zipf_tokens(vocabulary, tokens, config.seed);
    let batches = TrainingBatches::new(&text, &config.batch, config.seed)?;
    let mut times = Vec::with_capacity(steps);
    let mut last = None;
    for step in 0..WARM_UP + steps {
        let began = Instant::now();
        let update = config.optimiser.update(step as u64 + 1, 1.0);
        let ahead = step + 1 < WARM_UP + steps;
        last = Some(trainer.step(&batches, &text, step as u64, update, ahead)?);
        times.push(began.elapsed().as_secs_f64());
    }
    let seconds_per_step = median(&mut times[WARM_UP..]);
    let last = last.expect("the warm-up has steps");
    Ok(Measurement {
        seconds_per_step,
        tokens_per_second: config.batch.tokens_per_step() as f64 / seconds_per_step,
        share_of_peak: last.operations
            / seconds_per_step
            / trainer.network.model.device.measured_peak(),
        loss: f64::from(last.loss),
    })
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len().is_multiple_of(2) {
        f64::midpoint(times[middle - 1], times[middle])
    } else {
        times[middle]
    }
}

/// The cumulative distribution of ranks under Zipf's law; the last value is 1.
fn zipf_cumulative(vocabulary: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut cumulative: Vec<f64> = (1..=vocabulary)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    for mass in &mut cumulative {
        *mass /= sum;
    }
    cumulative
}

/// Tokens drawn from Zipf's law.
pub fn zipf_tokens(vocabulary: usize, count: usize, seed: u64) -> Vec<u32> {
    let cumulative = zipf_cumulative(vocabulary);
    let mut random = Philox::new(seed, [0, 0, PURPOSE]);
    let mut draw = || {
        let point = random.uniform();
        cumulative.partition_point(|mass| *mass <= point).min(vocabulary - 1) as u32
    };
    (0..count).map(|_| draw()).collect()
}

/// Where classes of equal mass under Zipf's law end: each with the token that completes its
/// share, and at least one token.
pub fn zipf_class_ends(vocabulary: usize, classes: usize) -> Vec<u32> {
    let cumulative = zipf_cumulative(vocabulary);
    let mut ends: Vec<u32> = Vec::with_capacity(classes);
    for class in 1..classes {
        let target = class as f64 / classes as f64;
        let completed = cumulative.partition_point(|mass| *mass < target) + 1;
        let least = ends.last().map_or(1, |end| end + 1);
        let most = (vocabulary - (classes - class)) as u32;
        ends.push((completed as u32).max(least).min(most));
    }
    ends.push(vocabulary as u32);
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn class_ends_are_a_partition(vocabulary in 1_usize..500, classes in 1_usize..40) {
            let classes = classes.min(vocabulary);
            let ends = zipf_class_ends(vocabulary, classes);
            prop_assert_eq!(ends.len(), classes);
            prop_assert!(ends[0] >= 1 && ends.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(*ends.last().unwrap(), vocabulary as u32);
        }
    }

    #[test]
    fn tokens_follow_zipfs_law() {
        let tokens = zipf_tokens(1_000, 100_000, 9);
        let share = |rank: u32| tokens.iter().filter(|t| **t == rank).count() as f64 / 1e5;
        // The harmonic number of 1,000 is 7.485: shares 0.1336 and 0.0668, deviation 0.001.
        assert!((share(0) - 0.1336).abs() < 0.005);
        assert!((share(1) - 0.0668).abs() < 0.005);
        assert!(tokens.iter().all(|token| *token < 1_000));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
