use f2_engine::Device;

use super::sampler::{Wanted, choose};
use super::scores::Scores;
use super::slots::{Place, Places, Text};
use super::{Continuation, Event, Strategy, Token, beam};
use crate::Error;
use crate::memory::{Purpose, available_memory, check_memory};
use crate::model::{Feed, Incremental, Model};

/// A model on a device, ready to write.
pub struct Generator<'a, D: Device> {
    /// The model.
    pub model: &'a Model<D>,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Token ids to go on from, at least one each.
    pub prompts: &'a [Vec<u32>],
    /// Texts for each prompt.
    pub samples: usize,
    /// Tokens in each text, at most.
    pub new_tokens: usize,
    /// How tokens are chosen.
    pub strategy: &'a Strategy,
    /// Decides every draw.
    pub seed: u64,
    /// A token that ends a text; none where all go to their full length.
    pub end: Option<u32>,
    /// Sequences worked on at a time; none for as many as suit the device and its memory.
    pub batch: Option<usize>,
}

impl Request<'_> {
    /// How many texts are asked for in all.
    pub fn texts(&self) -> usize {
        self.prompts.len().saturating_mul(self.samples)
    }

    /// How many sequences are in the cache at a time: about `batch`, but no more than are written,
    /// and with a beam whole beams of them.
    fn whole(&self, batch: usize) -> usize {
        match &self.strategy.beam {
            Some(beam) => beam.at_a_time(batch, self.prompts.len()) * beam.width,
            None => batch.clamp(1, self.texts().max(1)),
        }
    }

    /// `batch` halved until it takes at most `most` bytes, or cannot be halved.
    fn fitting(&self, batch: usize, most: u64, bytes: impl Fn(usize) -> u64) -> usize {
        let mut sequences = self.whole(batch);
        while bytes(sequences) > most && self.whole(sequences / 2) < sequences {
            sequences = self.whole(sequences / 2);
        }
        sequences
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// In the order of the prompts, the samples of one after the other.
    pub texts: Vec<Continuation>,
    /// False when it was stopped: then only finished texts are there.
    pub complete: bool,
}

impl<D: Device> Generator<'_, D> {
    /// Writes what is asked for. `observer` sees every token; `stop` is asked after every pass.
    pub fn generate(
        &self,
        request: &Request<'_>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Generated, Error> {
        self.check(request)?;
        let sequences = self.sequences(request)?;
        let mut texts = match &request.strategy.beam {
            Some(search) => beam::search(self, request, search, sequences, observer, stop)?,
            None => self.sample(request, sequences, observer, stop)?,
        };
        texts.sort_by_key(|text| (text.prompt, text.sample));
        let complete = texts.len() == request.texts();
        Ok(Generated { texts, complete })
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

    /// How many sequences are in the cache at a time. Where the request leaves it open, they take
    /// at most half of the memory that could be had.
    fn sequences(&self, request: &Request<'_>) -> Result<usize, Error> {
        let bytes = |sequences: usize| {
            let decoder = &self.model.decoder;
            let memory = Incremental::<D>::bytes(decoder, sequences, self.capacity(request));
            memory.saturating_add(Scores::<D>::bytes(decoder, sequences))
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

    /// The room one sequence needs in the cache.
    pub(super) fn capacity(&self, request: &Request<'_>) -> usize {
        let longest = request.prompts.iter().map(Vec::len).max().unwrap_or(0);
        longest.saturating_add(request.new_tokens).clamp(1, self.model.decoder.shape.positions)
    }

    fn sample(
        &self,
        request: &Request<'_>,
        sequences: usize,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Continuation>, Error> {
        let mut writers = Writers::new(self, request, sequences)?;
        observer(Event::Ready);
        let mut finished = Vec::new();
        writers.retire(request, &mut finished, observer);
        while !writers.open.is_empty() && !stop() {
            writers.step(request, observer)?;
            writers.retire(request, &mut finished, observer);
        }
        Ok(finished)
    }
}

/// One text being written in one sequence of the cache.
struct Writer {
    sequence: usize,
    number: usize,
    place: Place,
    text: Text,
    tokens: Vec<Token>,
    ended: bool,
}

/// As many texts at a time as there are sequences; when one ends the next begins in its place.
struct Writers<'a, D: Device> {
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    places: Places<'a>,
    /// The number of the next text to begin.
    next: usize,
    open: Vec<Writer>,
}

impl<'a, D: Device> Writers<'a, D> {
    fn new(
        generator: &Generator<'a, D>,
        request: &Request<'a>,
        sequences: usize,
    ) -> Result<Self, Error> {
        let model = generator.model;
        let scores = Scores::new(model, sequences)?;
        let memory = Incremental::new(model, sequences, generator.capacity(request))?;
        let places = Places::new(request.prompts, request.samples);
        let mut writers = Self { scores, memory, places, next: 0, open: Vec::new() };
        for sequence in 0..sequences {
            writers.begin(request, sequence);
        }
        Ok(writers)
    }

    fn begin(&mut self, request: &Request<'_>, sequence: usize) {
        if self.next == request.texts() {
            return;
        }
        let number = self.next;
        self.next += 1;
        let place = self.places.place(number);
        let prompt = &request.prompts[number / request.samples];
        let text = Text::new(prompt, self.scores.model.decoder.shape.positions);
        let ended = request.new_tokens == 0;
        self.open.push(Writer { sequence, number, place, text, tokens: Vec::new(), ended });
    }

    /// One token more of every open text.
    fn step(
        &mut self,
        request: &Request<'_>,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let Self { scores, memory, open, .. } = self;
        let positions = scores.model.decoder.shape.positions;
        let feeds: Vec<Feed<'_>> =
            open.iter_mut().map(|writer| writer.text.feed(writer.sequence, positions)).collect();
        memory.advance(scores.model, &feeds)?;
        let mut wanted: Vec<Wanted<'_>> = open
            .iter()
            .map(|writer| Wanted {
                history: &writer.text.history,
                random: writer.place.random(request.seed, writer.tokens.len()),
            })
            .collect();
        let chosen = choose(scores, request.strategy, memory.hidden(), &mut wanted)?;
        for (writer, token) in open.iter_mut().zip(&chosen) {
            if request.end == Some(token.id) {
                writer.ended = true;
                continue;
            }
            writer.text.history.push(token.id);
            writer.tokens.push(*token);
            writer.ended = writer.tokens.len() == request.new_tokens;
            observer(Event::Token { text: writer.number, token });
        }
        observer(Event::Step { tokens: chosen.len() });
        Ok(())
    }

    /// Hands over what has ended, and begins what comes next.
    fn retire(
        &mut self,
        request: &Request<'_>,
        finished: &mut Vec<Continuation>,
        observer: &mut dyn FnMut(Event<'_>),
    ) {
        while let Some(place) = self.open.iter().position(|writer| writer.ended) {
            let Writer { sequence, number, tokens, .. } = self.open.remove(place);
            let (prompt, sample) = (number / request.samples, number % request.samples);
            let text = Continuation { prompt, sample, tokens };
            observer(Event::Finished(&text));
            finished.push(text);
            self.begin(request, sequence);
        }
    }
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
            let request =
                Request { prompts, samples, new_tokens, strategy, seed, end: None, batch: None };
            request.fitting(64, most, |sequences| 10 * sequences as u64)
        };
        assert_eq!([640, 639, 159, 0].map(|most| at_a_time(None, most)), [64, 32, 8, 1]);
        let beam = BeamSearch { width: 5, groups: 1, diversity: 0.0, length_penalty: 1.0 };
        let beams = [640, 599, 0].map(|most| at_a_time(Some(beam.clone()), most));
        assert_eq!(beams, [60, 30, 5]);
    }
}
