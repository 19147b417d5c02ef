//! Generation requests and their results.

use std::ops::Range;

use f2_engine::Device;

use super::scheduler::Scheduler;
use super::stop::StopSequences;
use super::{Contrast, Strategy, beam, contrastive_search, sampling};
use crate::Error;
use crate::memory::{Purpose, available_memory, check_memory};
use crate::model::Model;
use crate::run::Vocabulary;

/// A model that continues prompts.
pub struct Generator<'a, D: Device> {
    /// The model.
    pub model: &'a Model<D>,
}

/// Prompts to continue, and how.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Token ids to continue, at least one each.
    pub prompts: &'a [Vec<u32>],
    /// Texts for each prompt.
    pub samples: usize,
    /// Tokens in each text, at most.
    pub new_tokens: usize,
    /// How tokens are chosen.
    pub strategy: &'a Strategy,
    /// Decides every draw.
    pub seed: u64,
    /// A token that ends a text; `None` if all texts have their full length.
    pub end: Option<u32>,
    /// Stop sequences, and the vocabulary that decodes tokens to text. Beam search ignores them.
    pub stops: Option<(&'a StopSequences, &'a Vocabulary)>,
    /// Prompts that were continued before: a prompt that is among them gets further samples.
    pub earlier: &'a [Vec<u32>],
    /// Sequences processed at a time; `None` for as many as suit the device and its memory.
    pub batch: Option<usize>,
}

impl Request<'_> {
    /// The total number of texts requested.
    pub fn texts(&self) -> usize {
        self.prompts.len().saturating_mul(self.samples)
    }

    /// How many texts a device with room for `most` sequences processes at a time; with a beam, a
    /// multiple of the texts per prompt.
    pub(super) fn texts_at_a_time(&self, most: usize) -> usize {
        let batch = self.batch.unwrap_or(most);
        match (&self.strategy.beam, &self.strategy.contrastive_search) {
            (Some(beam), _) => beam.at_a_time(batch, self.prompts.len()) * self.samples.max(1),
            (None, Some(search)) => search.at_a_time(batch, self.texts()),
            (None, None) => self.whole(batch),
        }
    }

    /// How many sequences are in the cache at a time: about `batch`, but no more than the texts
    /// need; in a search a multiple of the beam's width or of k.
    fn whole(&self, batch: usize) -> usize {
        match (&self.strategy.beam, &self.strategy.contrastive_search) {
            (Some(beam), _) => beam.at_a_time(batch, self.prompts.len()) * beam.width,
            (None, Some(search)) => search.at_a_time(batch, self.texts()) * search.k,
            (None, None) => batch.clamp(1, self.texts().max(1)),
        }
    }

    /// `batch` halved until it takes at most `most` bytes, or cannot be halved further.
    fn fitting(&self, batch: usize, most: u64, bytes: impl Fn(usize) -> u64) -> usize {
        let mut sequences = self.whole(batch);
        while bytes(sequences) > most && self.whole(sequences / 2) < sequences {
            sequences = self.whole(sequences / 2);
        }
        sequences
    }
}

/// The texts of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// In the order of the prompts; the samples of a prompt are consecutive.
    pub texts: Vec<Continuation>,
    /// False if generation was stopped: then only finished texts are included.
    pub complete: bool,
}

impl Generated {
    /// The result of a request, from its finished texts in any order.
    pub(super) fn of(request: &Request<'_>, mut texts: Vec<Continuation>) -> Self {
        texts.sort_by_key(|text| (text.prompt, text.sample));
        let complete = texts.len() == request.texts();
        Self { texts, complete }
    }
}

impl<D: Device> Generator<'_, D> {
    /// Continues the prompts. `observer` sees every token; `stop` is checked before every pass.
    pub fn generate(
        &self,
        request: &Request<'_>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Generated, Error> {
        self.generate_all(request, None, observer, stop)
    }

    /// The same, contrasted with an amateur of the same vocabulary, with the settings in the
    /// strategy's [`contrast`](Strategy::contrast).
    pub fn generate_against(
        &self,
        amateur: &Model<D>,
        request: &Request<'_>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Generated, Error> {
        self.generate_all(request, Some(amateur), observer, stop)
    }

    fn generate_all(
        &self,
        request: &Request<'_>,
        amateur: Option<&Model<D>>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Generated, Error> {
        let mut all = std::iter::once(0..request.texts());
        let texts = self.generate_parts(request, amateur, &mut all, observer, stop)?;
        Ok(Generated::of(request, texts))
    }

    /// Writes the texts whose numbers are in `parts`, part by part. With a beam, all texts of a
    /// prompt must be in one part.
    pub(super) fn generate_parts(
        &self,
        request: &Request<'_>,
        amateur: Option<&Model<D>>,
        parts: &mut dyn Iterator<Item = Range<usize>>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Continuation>, Error> {
        self.check(request)?;
        Contrast::check_presence(request.strategy, amateur.is_some())?;
        if let Some(amateur) = amateur {
            Contrast::check_amateur(&self.model.decoder.shape, &amateur.decoder.shape)?;
        }
        let sequences = self.sequences(request, amateur)?;
        match (&request.strategy.beam, &request.strategy.contrastive_search) {
            (Some(search), _) => {
                let begun = beam::Searcher::new(self, amateur, request, search, sequences)?;
                beam::search(begun, parts, observer, stop)
            }
            (None, Some(search)) => {
                contrastive_search::search(self, request, search, sequences, parts, observer, stop)
            }
            (None, None) => {
                sampling::sample(self, amateur, request, sequences, parts, observer, stop)
            }
        }
    }

    fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        let shape = &self.model.decoder.shape;
        request.strategy.check(shape)?;
        let vocabulary = shape.vocabulary;
        for (prompt, ids) in request.prompts.iter().enumerate() {
            if ids.is_empty() {
                return Err(Error::EmptyPrompt { prompt });
            }
            if let Some(&token) = ids.iter().find(|id| **id as usize >= vocabulary) {
                return Err(Error::TokenOutside { token, vocabulary });
            }
        }
        Ok(())
    }

    /// How many sequences are in the cache at a time. If `request.batch` is `None`, they take at
    /// most half of the available memory.
    fn sequences(&self, request: &Request<'_>, amateur: Option<&Model<D>>) -> Result<usize, Error> {
        let capacity = self.capacity(request);
        let bytes = |sequences: usize| {
            let models = std::iter::once(self.model).chain(amateur);
            models.fold(0_u64, |sum, model| {
                sum.saturating_add(Scheduler::bytes(model, sequences, capacity))
            })
        };
        let sequences = request.batch.map_or_else(
            || {
                let most = available_memory(&self.model.device).unwrap_or(u64::MAX) / 2;
                request.fitting(D::SEQUENCES, most, bytes)
            },
            |batch| request.whole(batch),
        );
        check_memory(&self.model.device, Purpose::Generation, bytes(sequences))?;
        Ok(sequences)
    }

    /// The cache capacity one sequence needs, in tokens.
    pub(super) fn capacity(&self, request: &Request<'_>) -> usize {
        let longest = request.prompts.iter().map(Vec::len).max().unwrap_or(0);
        longest.saturating_add(request.new_tokens).clamp(1, self.model.decoder.shape.positions)
    }
}

/// A token as it was chosen. Log-probabilities are the model's own, in nats, before any
/// penalty, temperature or truncation of the strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Its frequency rank.
    pub id: u32,
    /// Of the full posterior: class and token together.
    pub log_probability: f32,
    /// Its class and that class's log-probability; `None` with a plain model.
    pub class: Option<(u32, f32)>,
}

/// The tokens a model wrote after a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// The index of the prompt.
    pub prompt: usize,
    /// The index among the prompt's samples; with beam search, best first.
    pub sample: usize,
    /// The tokens, without an end token.
    pub tokens: Vec<Token>,
}

impl Continuation {
    /// The tokens' ids.
    pub fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.id).collect()
    }

    /// The log-probability of the whole text, in nats.
    pub fn log_probability(&self) -> f64 {
        self.tokens.iter().map(|token| f64::from(token.log_probability)).sum()
    }
}

/// An event of generation, for its observer.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The memory is allocated; the first pass follows.
    Ready,
    /// A token of a text that is not finished; the text's number is `prompt · samples + sample`.
    /// Beam search does not send it: its texts are known only at the end.
    Token {
        /// The number of the text.
        text: usize,
        /// The token.
        token: &'a Token,
    },
    /// A pass over all texts in progress.
    Step {
        /// How many tokens it chose.
        tokens: usize,
    },
    /// A text is complete.
    Finished(&'a Continuation),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::BeamSearch;

    #[test]
    fn as_many_texts_at_a_time_as_memory_holds() {
        let prompts = vec![vec![0]; 100];
        let mut strategy = Strategy::default();
        let mut at_a_time = |beam: Option<BeamSearch>, most: u64| {
            strategy.beam = beam;
            let (strategy, prompts) = (&strategy, &prompts[..]);
            let (samples, new_tokens, seed) = (1, 1, 0);
            let request = Request {
                prompts,
                samples,
                new_tokens,
                strategy,
                seed,
                end: None,
                stops: None,
                earlier: &[],
                batch: None,
            };
            request.fitting(64, most, |sequences| 10 * sequences as u64)
        };
        assert_eq!([640, 639, 159, 0].map(|most| at_a_time(None, most)), [64, 32, 8, 1]);
        let beam =
            BeamSearch { width: 5, groups: 1, diversity: 0.0, length_penalty: 1.0, iterations: 1 };
        let beams = [640, 599, 0].map(|most| at_a_time(Some(beam.clone()), most));
        assert_eq!(beams, [60, 30, 5]);
    }
}
