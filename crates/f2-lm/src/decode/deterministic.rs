//! Deterministic decoding: error diffusion decides where a random number would.
//!
//! Each context of a draw has an accumulated error for each rank in the order of probability. At
//! every draw, the probability of each rank is added to its error; the rank with the largest error
//! is chosen, and 1 is subtracted from its error. The sum of a context's errors therefore never
//! changes, and over any sequence of distributions each rank is chosen about as often as its
//! probabilities add up to: with K ranks starting at zero, less than 1 more often and at most
//! 1/2 + 1/3 + … + 1/K less often (docs/beyond.md has the proof).
//!
//! Errors belong to ranks, not to ids: with an error per id, a token that was just chosen could
//! not soon occur again, unlike in human text. The first draw of each token has a context for each
//! frequency band of the previous token: with a single context, a likely class that was just chosen
//! would have to wait, and pairs of tokens would not be as frequent as under the model.

use std::collections::HashMap;

use super::Distribution;
use super::sequence::RandomStream;

/// The error diffusion of one text. Errors are stored only for ranks that a draw could choose.
#[derive(Clone, Debug)]
pub struct ErrorDiffusion {
    /// Determines the initial errors; `None` for zero.
    phases: Option<RandomStream>,
    /// The accumulated errors by rank, the most likely first.
    errors: HashMap<Context, Vec<f64>>,
}

/// The context of a draw; each has its own errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// All tokens at once, after a token of this band.
    Vocabulary {
        /// See [`Context::band`].
        after: u32,
    },
    /// The classes, after a token of this band.
    Classes {
        /// See [`Context::band`].
        after: u32,
    },
    /// The tokens of a class.
    Class(u32),
}

impl Context {
    /// The frequency band of the last token: ids are frequency ranks, and bands end at powers of
    /// two.
    pub fn band(history: &[u32]) -> u32 {
        history.last().map_or(0, |id| u32::BITS - id.leading_zeros())
    }

    /// A number unique to the context.
    fn number(self) -> u64 {
        match self {
            Self::Vocabulary { after } => u64::from(after),
            Self::Classes { after } => 64 + u64::from(after),
            Self::Class(class) => 128 + u64::from(class),
        }
    }
}

impl ErrorDiffusion {
    /// Errors that begin at phases from [−½, ½), determined by prompt and sample: with the same
    /// initial errors, texts would begin alike.
    pub fn new(stream: RandomStream) -> Self {
        Self { phases: Some(stream), errors: HashMap::new() }
    }

    /// Errors that begin at zero.
    pub fn from_zero() -> Self {
        Self { phases: None, errors: HashMap::new() }
    }

    /// Adds to the error of every rank its probability, and returns the id at the rank with the
    /// largest error, from which 1 is subtracted. Ties go to the more likely, and among equally
    /// likely ids to the smaller.
    pub fn choose(&mut self, context: Context, distribution: &Distribution) -> u32 {
        let Self { phases, errors } = self;
        let ranked = distribution.descending();
        let errors = errors.entry(context).or_default();
        for rank in errors.len()..ranked.len() {
            errors.push(phases.map_or(0.0, |stream| stream.phase(context.number(), rank as u32)));
        }
        let mut largest = 0;
        for (rank, (_, probability)) in ranked.iter().enumerate() {
            errors[rank] += probability;
            if errors[rank] > errors[largest] {
                largest = rank;
            }
        }
        errors[largest] -= 1.0;
        ranked[largest].0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::decode::RandomStreams;

    #[derive(Deserialize)]
    struct Case {
        prompt: Option<Vec<u32>>,
        sample: usize,
        /// The context, the last token or the class, the weights, the id chosen.
        draws: Vec<(String, u32, Vec<u32>, u32)>,
    }

    /// The oracle adds the same numbers in the same order, so that every choice is the same,
    /// including ties.
    #[test]
    fn choices_are_those_of_the_oracle() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../tests/fixtures/deterministic.json")).unwrap();
        assert!(cases.iter().any(|case| case.prompt.is_none()));
        for Case { prompt, sample, draws } in cases {
            let mut diffusion = match prompt {
                Some(prompt) => ErrorDiffusion::new(RandomStreams::new(&[prompt], 9).of(sample)),
                None => ErrorDiffusion::from_zero(),
            };
            for (kind, number, weights, chosen) in draws {
                let after = Context::band(&[number]);
                let context = match kind.as_str() {
                    "vocabulary" => Context::Vocabulary { after },
                    "classes" => Context::Classes { after },
                    _ => Context::Class(number),
                };
                let weights = (0..).zip(weights.into_iter().map(f64::from));
                let distribution = Distribution::from_weights(weights);
                assert_eq!(diffusion.choose(context, &distribution), chosen);
            }
        }
    }

    const CONTEXT: Context = Context::Vocabulary { after: 0 };

    /// How often each rank was chosen less what its probabilities add up to, after every
    /// step.
    fn excesses(diffusion: &mut ErrorDiffusion, steps: &[Vec<u32>]) -> Vec<Vec<f64>> {
        let mut excess = vec![0.0; steps.iter().map(Vec::len).max().unwrap_or(0)];
        let excesses = steps.iter().map(|weights| {
            let distribution =
                Distribution::from_weights((0..).zip(weights.iter().copied().map(f64::from)));
            let chosen = diffusion.choose(CONTEXT, &distribution);
            for (rank, (id, probability)) in distribution.descending().into_iter().enumerate() {
                excess[rank] += f64::from(u8::from(id == chosen)) - probability;
            }
            excess.clone()
        });
        excesses.collect()
    }

    fn harmonic(ranks: usize) -> f64 {
        (2..=ranks).map(|rank| 1.0 / rank as f64).sum()
    }

    fn weights(ranks: usize) -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(1_u32..1000, ranks)
    }

    /// The rounding error of this many additions in `f64`.
    const ROUNDING: f64 = 1e-9;

    proptest! {
        /// The bounds hold for any distributions, from zero.
        #[test]
        fn every_rank_gets_its_share(steps in (1_usize..12).prop_flat_map(|ranks| prop::collection::vec(weights(ranks), 1..200))) {
            let ranks = steps[0].len();
            for excess in excesses(&mut ErrorDiffusion::from_zero(), &steps).concat() {
                prop_assert!(excess <= 1.0 - 1.0 / ranks as f64 + ROUNDING);
                prop_assert!(-excess <= harmonic(ranks) + ROUNDING);
            }
        }

        /// Phases are within ½ of zero and of their mean, which moves both bounds by 1 at most.
        #[test]
        fn phases_cost_one_choice_at_most(prompt in prop::collection::vec(0_u32..100, 1..5), steps in (1_usize..12).prop_flat_map(|ranks| prop::collection::vec(weights(ranks), 1..200))) {
            let ranks = steps[0].len();
            let mut diffusion = ErrorDiffusion::new(RandomStreams::new(&[prompt], 1).of(0));
            for excess in excesses(&mut diffusion, &steps).concat() {
                prop_assert!(excess <= 2.0 - 1.0 / ranks as f64 + ROUNDING);
                prop_assert!(-excess <= harmonic(ranks) + 1.0 + ROUNDING);
            }
        }

        /// A fixed distribution: each id is chosen as often as it is likely.
        #[test]
        fn a_fixed_distribution_is_met(weights in weights(6), steps in 1_usize..300) {
            let mut diffusion = ErrorDiffusion::from_zero();
            let distribution = Distribution::from_weights((0..).zip(weights.into_iter().map(f64::from)));
            let mut times = [0.0; 6];
            for _ in 0..steps {
                times[diffusion.choose(CONTEXT, &distribution) as usize] += 1.0;
            }
            for (id, probability) in distribution.entries() {
                let missing = steps as f64 * probability - times[*id as usize];
                prop_assert!(missing <= harmonic(6) + ROUNDING && missing >= -5.0 / 6.0 - ROUNDING);
            }
        }
    }

    /// Contexts do not share errors, nor do samples share phases.
    #[test]
    fn contexts_and_samples_are_apart() {
        let even = Distribution::from_weights((0..8).map(|id| (id, 1.0)));
        let prompts = [vec![4, 2]];
        let streams = RandomStreams::new(&prompts, 2);
        let order = |sample, context| -> Vec<u32> {
            let mut diffusion = ErrorDiffusion::new(streams.of(sample));
            (0..8).map(|_| diffusion.choose(context, &even)).collect()
        };
        let orders = [
            order(0, Context::Classes { after: 0 }),
            order(0, Context::Classes { after: 5 }),
            order(0, Context::Vocabulary { after: 0 }),
            order(0, Context::Class(0)),
            order(0, Context::Class(1)),
            order(1, Context::Classes { after: 0 }),
        ];
        for (place, order) in orders.iter().enumerate() {
            let mut all = order.clone();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..8));
            assert!(!orders[..place].contains(order));
        }
    }
}
