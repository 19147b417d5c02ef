//! Contrastive search (Su et al., 2022): the one of the likeliest tokens that is both likely and
//! unlike the text so far.
//!
//! A candidate's score is `(1 − alpha) · p − alpha · s`, where `s` is the largest cosine between
//! the hidden state it leads to and those of the tokens the model sees. Every candidate is
//! therefore fed to the model: a text takes one sequence of the cache per candidate, and after each
//! token all of them become copies of the chosen one.

mod ranked;
mod searched_text;

use std::ops::Range;

use f2_engine::Device;
use rayon::prelude::*;

use self::ranked::ranked;
use self::searched_text::SearchedText;
use super::checks::{check_k, require};
use super::generator::{Generator, Request};
use super::sampler::Wanted;
use super::scores::Scores;
use super::sequence::RandomStreams;
use super::stop::StopWatch;
use super::{Continuation, Event, Strategy, Token, Truncations};
use crate::Error;
use crate::model::{Feed, Incremental, ModelShape};

/// The settings of contrastive search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContrastiveSearch {
    /// The weight of similarity to the text in a token's score; 0 is greedy.
    pub alpha: f64,
    /// How many of the likeliest tokens are compared.
    pub k: usize,
}

impl Default for ContrastiveSearch {
    fn default() -> Self {
        Self { alpha: 0.6, k: 4 }
    }
}

impl ContrastiveSearch {
    /// How many of `texts` texts are written at a time, with about `batch` sequences in the cache.
    pub(super) fn at_a_time(&self, batch: usize, texts: usize) -> usize {
        (batch / self.k).clamp(1, texts.max(1))
    }

    pub(super) fn check(&self, strategy: &Strategy, shape: &ModelShape) -> Result<(), Error> {
        let Self { alpha, k } = *self;
        require("penalty alpha", (0.0..=1.0).contains(&alpha), || {
            format!("{alpha} is not a number from 0 to 1")
        })?;
        check_k("contrastive search", Some(k), shape.vocabulary, "tokens")?;
        require("contrastive search", shape.positions > 1, || {
            "the model sees a single token: there is no text to be unlike".to_owned()
        })?;
        let draws = strategy.truncations != Truncations::default()
            || strategy.xtc.is_some()
            || strategy.mirostat.is_some()
            || strategy.temperature != 1.0;
        require("contrastive search", !draws && strategy.beam.is_none(), || {
            format!(
                "it does not draw tokens: leave temperature, {}, XTC, mirostat and beam search out",
                Truncations::names()
            )
        })
    }
}

/// Writes the texts in `parts`, as many at a time as fit into `sequences` sequences of the cache.
pub(super) fn search<D: Device>(
    generator: &Generator<'_, D>,
    request: &Request<'_>,
    search: &ContrastiveSearch,
    sequences: usize,
    parts: &mut dyn Iterator<Item = Range<usize>>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Continuation>, Error> {
    let at_a_time = sequences / search.k;
    let mut searcher = Searcher::new(generator, request, search, at_a_time)?;
    observer(Event::Ready);
    let mut finished = Vec::new();
    for part in parts {
        for first in part.clone().step_by(at_a_time) {
            let texts = searcher.run(first..part.end.min(first + at_a_time), observer, stop)?;
            let Some(texts) = texts else { return Ok(finished) };
            finished.extend(texts);
        }
    }
    Ok(finished)
}

struct Searcher<'a, D: Device> {
    request: &'a Request<'a>,
    search: &'a ContrastiveSearch,
    streams: RandomStreams<'a>,
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    /// The last hidden state of every text, `[texts, width]`.
    states: D::Activations,
    sequences: usize,
}

impl<'a, D: Device> Searcher<'a, D> {
    fn new(
        generator: &Generator<'a, D>,
        request: &'a Request<'a>,
        search: &'a ContrastiveSearch,
        at_a_time: usize,
    ) -> Result<Self, Error> {
        let model = generator.model;
        let sequences = at_a_time * search.k;
        let streams = RandomStreams::after(request.earlier, request.prompts, request.samples);
        Ok(Self {
            request,
            search,
            streams,
            scores: Scores::new(model, at_a_time)?,
            memory: Incremental::new(model, sequences, generator.capacity(request))?,
            states: model.device.activations(at_a_time * model.decoder.shape.model.width)?,
            sequences,
        })
    }

    /// Writes some texts to completion; `None` if stopped.
    fn run(
        &mut self,
        numbers: Range<usize>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Continuation>>, Error> {
        let Self { request, search, .. } = *self;
        let begin = |(place, number): (usize, usize)| SearchedText {
            number,
            sequence: place * search.k,
            history: request.prompts[number / request.samples].clone(),
            watch: request.stops.map(|(stops, vocabulary)| StopWatch::new(stops, vocabulary)),
            ..SearchedText::default()
        };
        let mut running: Vec<SearchedText<'_>> = numbers.enumerate().map(begin).collect();
        let mut finished = Vec::new();
        for _ in 0..request.new_tokens {
            if stop() {
                return Ok(None);
            }
            let tokens = self.step(&mut running)?;
            for (text, token) in running.iter_mut().zip(&tokens) {
                if text.take(*token, request.end)? {
                    observer(Event::Token { text: text.number, token });
                }
            }
            observer(Event::Step { tokens: tokens.len() });
            let (ended, rest) = running.into_iter().partition(|text| text.is_over);
            finished.extend(Vec::into_iter(ended));
            running = rest;
            if running.is_empty() {
                break;
            }
        }
        finished.extend(running);
        finished.sort_by_key(|text| text.number);
        let texts: Vec<Continuation> = finished
            .into_iter()
            .map(|text| {
                let (prompt, sample) =
                    (text.number / request.samples, text.number % request.samples);
                Continuation { prompt, sample, tokens: text.tokens }
            })
            .collect();
        texts.iter().for_each(|text| observer(Event::Finished(text)));
        Ok(Some(texts))
    }

    /// Chooses the next token of every text.
    fn step(&mut self, texts: &mut [SearchedText<'_>]) -> Result<Vec<Token>, Error> {
        self.feed(texts)?;
        let found = self.candidates(texts)?;
        let states = self.advance(texts, &found)?;
        let width = self.scores.model.decoder.shape.model.width;
        let mut states = states.chunks(width);
        let mut of_text = |found: &Vec<_>| states.by_ref().take(found.len()).collect();
        let states: Vec<Vec<&[f32]>> = found.iter().map(&mut of_text).collect();
        let candidates = found.par_iter().zip(&states);
        let best = texts
            .par_iter()
            .zip(candidates)
            .map(|(text, (found, states))| text.best(self.search.alpha, found, states));
        let best: Vec<usize> = best.collect();
        let mut parents: Vec<u32> = (0..self.sequences as u32).collect();
        let mut tokens = Vec::with_capacity(texts.len());
        for (((text, found), states), best) in texts.iter_mut().zip(found).zip(states).zip(best) {
            text.see(states[best]);
            parents[text.sequence..][..self.search.k].fill((text.sequence + best) as u32);
            tokens.push(found[best].0);
        }
        let longest = texts.iter().map(SearchedText::seen).max().unwrap_or(0);
        self.memory.reorder(&self.scores.model.device, &parents, longest);
        Ok(tokens)
    }

    /// Feeds the context of texts that are new or have no position left for another token.
    fn feed(&mut self, texts: &mut [SearchedText<'_>]) -> Result<(), Error> {
        let model = self.scores.model;
        let shape = &model.decoder.shape;
        let mut parents: Vec<u32> = (0..self.sequences as u32).collect();
        let mut longest = 0;
        for text in texts.iter_mut().filter(|text| text.is_due(shape.positions)) {
            let (seen, sequence) = (text.window(shape.positions), text.sequence);
            let mut cached = 0;
            for tokens in seen.chunks(Incremental::<D>::MOST_TOKENS) {
                self.memory.advance_and_keep_all(model, Feed { sequence, cached, tokens });
                cached += tokens.len();
                let mut states = vec![0.0; tokens.len() * shape.model.width];
                model.device.read_activations(self.memory.hidden(), &mut states)?;
                states.chunks(shape.model.width).for_each(|state| text.see(state));
            }
            parents[sequence..][..self.search.k].fill(sequence as u32);
            longest = longest.max(cached);
        }
        if longest > 0 {
            self.memory.reorder(&model.device, &parents, longest);
        }
        Ok(())
    }

    /// The likeliest next tokens of every text and their probabilities.
    fn candidates(&mut self, texts: &[SearchedText<'_>]) -> Result<Vec<Vec<(Token, f64)>>, Error> {
        let Self { request, search, streams, scores, states, .. } = self;
        let last: Vec<f32> = texts.iter().flat_map(|text| &text.state).copied().collect();
        scores.model.device.write_activations(&last, states);
        let wanted = texts.iter().map(|text| Wanted {
            history: &text.history,
            random: streams.of(text.number).at(request.seed, text.tokens.len()),
            limit: None,
            diffusion: None,
            amateur: None,
        });
        let mut wanted: Vec<Wanted<'_>> = wanted.collect();
        ranked(scores, request.strategy, search.k, states, &mut wanted)
    }

    /// Feeds every candidate to a sequence of its own, and returns the states they lead to.
    fn advance(
        &mut self,
        texts: &[SearchedText<'_>],
        found: &[Vec<(Token, f64)>],
    ) -> Result<Vec<f32>, Error> {
        let Self { scores, memory, .. } = self;
        let ids: Vec<u32> = found.iter().flatten().map(|(token, _)| token.id).collect();
        let places = texts.iter().zip(found).flat_map(|(text, found)| {
            (text.sequence..).take(found.len()).map(|sequence| (sequence, text.seen()))
        });
        let feeds: Vec<Feed<'_>> = places
            .zip(ids.chunks(1))
            .map(|((sequence, cached), tokens)| Feed { sequence, cached, tokens })
            .collect();
        memory.advance(scores.model, &feeds)?;
        let mut states = vec![0.0; ids.len() * scores.model.decoder.shape.model.width];
        scores.model.device.read_activations(memory.hidden(), &mut states)?;
        Ok(states)
    }
}
