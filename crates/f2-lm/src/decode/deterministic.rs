//! Deterministic decoding by error diffusion: accounts decide where a random number would.
//!
//! Each kind of distribution has a book of accounts, one for each rank in the order of probability.
//! At every draw each rank is credited with its probability; the rank with the largest balance is
//! chosen and pays 1. The sum of a book's balances therefore never changes, and over any sequence
//! of distributions each rank is chosen about as often as its probabilities add up to: with K ranks
//! starting at zero, less than 1 more often and at most 1/2 + 1/3 + … + 1/K less often
//! (docs/beyond.md has the proof).
//!
//! Accounts belong to ranks, not to ids: with an account per id, a token that was just chosen could
//! not soon occur again, unlike in human text. The first draw of each token has a book for each
//! frequency band of the previous token: with a single book, a likely class that was just chosen
//! would have to wait, and pairs of tokens would not be as frequent as under the model.

use std::collections::HashMap;

use super::Distribution;
use super::sequence::RandomStream;

/// The accounts of one text. They are allocated only for ranks that a draw could choose.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// Determines the initial balances; `None` for zero.
    phases: Option<RandomStream>,
    /// The balances by rank, the most likely first.
    books: HashMap<Book, Vec<f64>>,
}

/// The kind of distribution that is drawn from; each has its own accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Book {
    /// All tokens at once, after a token of this band.
    Vocabulary {
        /// See [`Book::band`].
        after: u32,
    },
    /// The classes, after a token of this band.
    Classes {
        /// See [`Book::band`].
        after: u32,
    },
    /// The tokens of a class.
    Class(u32),
}

impl Book {
    /// The frequency band of the last token: ids are frequency ranks, and bands end at powers of
    /// two.
    pub fn band(history: &[u32]) -> u32 {
        history.last().map_or(0, |id| u32::BITS - id.leading_zeros())
    }

    /// A number unique to the book.
    fn number(self) -> u64 {
        match self {
            Self::Vocabulary { after } => u64::from(after),
            Self::Classes { after } => 64 + u64::from(after),
            Self::Class(class) => 128 + u64::from(class),
        }
    }
}

impl Accounts {
    /// Accounts that begin at phases from [−½, ½), determined by prompt and sample: with the same
    /// initial balances, texts would begin alike.
    pub fn new(stream: RandomStream) -> Self {
        Self { phases: Some(stream), books: HashMap::new() }
    }

    /// Accounts that begin at zero.
    pub fn from_zero() -> Self {
        Self { phases: None, books: HashMap::new() }
    }

    /// Credits every rank with its probability, and returns the id at the rank with the largest
    /// balance, which pays 1. Ties go to the more likely, and among equally likely ids to the
    /// smaller.
    pub fn choose(&mut self, book: Book, distribution: &Distribution) -> u32 {
        let Self { phases, books } = self;
        let ranked = distribution.descending();
        let accounts = books.entry(book).or_default();
        for rank in accounts.len()..ranked.len() {
            accounts.push(phases.map_or(0.0, |stream| stream.phase(book.number(), rank as u32)));
        }
        let mut richest = 0;
        for (rank, (_, probability)) in ranked.iter().enumerate() {
            accounts[rank] += probability;
            if accounts[rank] > accounts[richest] {
                richest = rank;
            }
        }
        accounts[richest] -= 1.0;
        ranked[richest].0
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
        /// The book, the last token or the class, the weights, the id chosen.
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
            let mut accounts = match prompt {
                Some(prompt) => Accounts::new(RandomStreams::new(&[prompt], 9).of(sample)),
                None => Accounts::from_zero(),
            };
            for (book, number, weights, chosen) in draws {
                let after = Book::band(&[number]);
                let book = match book.as_str() {
                    "vocabulary" => Book::Vocabulary { after },
                    "classes" => Book::Classes { after },
                    _ => Book::Class(number),
                };
                let weights = (0..).zip(weights.into_iter().map(f64::from));
                let distribution = Distribution::from_weights(weights);
                assert_eq!(accounts.choose(book, &distribution), chosen);
            }
        }
    }

    const BOOK: Book = Book::Vocabulary { after: 0 };

    /// How often each rank was chosen less what its probabilities add up to, after every
    /// step.
    fn excesses(accounts: &mut Accounts, steps: &[Vec<u32>]) -> Vec<Vec<f64>> {
        let mut excess = vec![0.0; steps.iter().map(Vec::len).max().unwrap_or(0)];
        let excesses = steps.iter().map(|weights| {
            let distribution =
                Distribution::from_weights((0..).zip(weights.iter().copied().map(f64::from)));
            let chosen = accounts.choose(BOOK, &distribution);
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
            for excess in excesses(&mut Accounts::from_zero(), &steps).concat() {
                prop_assert!(excess <= 1.0 - 1.0 / ranks as f64 + ROUNDING);
                prop_assert!(-excess <= harmonic(ranks) + ROUNDING);
            }
        }

        /// Phases are within ½ of zero and of their mean, which moves both bounds by 1 at most.
        #[test]
        fn phases_cost_one_choice_at_most(prompt in prop::collection::vec(0_u32..100, 1..5), steps in (1_usize..12).prop_flat_map(|ranks| prop::collection::vec(weights(ranks), 1..200))) {
            let ranks = steps[0].len();
            let mut accounts = Accounts::new(RandomStreams::new(&[prompt], 1).of(0));
            for excess in excesses(&mut accounts, &steps).concat() {
                prop_assert!(excess <= 2.0 - 1.0 / ranks as f64 + ROUNDING);
                prop_assert!(-excess <= harmonic(ranks) + 1.0 + ROUNDING);
            }
        }

        /// A fixed distribution: each id is chosen as often as it is likely.
        #[test]
        fn a_fixed_distribution_is_met(weights in weights(6), steps in 1_usize..300) {
            let mut accounts = Accounts::from_zero();
            let distribution = Distribution::from_weights((0..).zip(weights.into_iter().map(f64::from)));
            let mut times = [0.0; 6];
            for _ in 0..steps {
                times[accounts.choose(BOOK, &distribution) as usize] += 1.0;
            }
            for (id, probability) in distribution.entries() {
                let missing = steps as f64 * probability - times[*id as usize];
                prop_assert!(missing <= harmonic(6) + ROUNDING && missing >= -5.0 / 6.0 - ROUNDING);
            }
        }
    }

    /// Books do not share accounts, nor do samples share phases.
    #[test]
    fn books_and_samples_are_apart() {
        let even = Distribution::from_weights((0..8).map(|id| (id, 1.0)));
        let prompts = [vec![4, 2]];
        let streams = RandomStreams::new(&prompts, 2);
        let order = |sample, book| -> Vec<u32> {
            let mut accounts = Accounts::new(streams.of(sample));
            (0..8).map(|_| accounts.choose(book, &even)).collect()
        };
        let orders = [
            order(0, Book::Classes { after: 0 }),
            order(0, Book::Classes { after: 5 }),
            order(0, Book::Vocabulary { after: 0 }),
            order(0, Book::Class(0)),
            order(0, Book::Class(1)),
            order(1, Book::Classes { after: 0 }),
        ];
        for (place, order) in orders.iter().enumerate() {
            let mut all = order.clone();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..8));
            assert!(!orders[..place].contains(order));
        }
    }
}
