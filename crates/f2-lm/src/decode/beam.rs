//! Beam search: the most likely texts rather than the most likely next tokens; with several groups
//! that avoid each other's tokens, diverse beam search (Vijayakumar et al., 2018), and with several
//! iterations that avoid each other's hypotheses, iterative beam search (Kulikov et al., 2019).

mod explored;
mod extend;
mod group;
mod settings;

use std::ops::Range;

use f2_engine::Device;

use self::explored::Explored;
use self::extend::{Extension, extensions};
use self::group::{Group, Hypothesis};
use super::contrast::Amateur;
use super::generator::{Generator, Request};
use super::scores::Scores;
use super::sequence::Sequence;
use super::{Continuation, Event, Token};
use crate::Error;
use crate::model::{Feed, Incremental, Model};

pub use self::settings::BeamSearch;

/// One prompt's beam.
struct Beam {
    prompt: usize,
    groups: Vec<Group>,
    /// Texts of earlier iterations with their scores.
    found: Vec<(f64, Vec<Token>)>,
    explored: Explored,
}

/// Searches the prompts of the texts in `parts`, as many prompts at a time as fit.
pub(super) fn search<D: Device>(
    mut searcher: Searcher<'_, D>,
    parts: &mut dyn Iterator<Item = Range<usize>>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Continuation>, Error> {
    let Searcher { request, search, at_a_time, .. } = searcher;
    observer(Event::Ready);
    let mut texts = Vec::new();
    let samples = request.samples.max(1);
    for part in parts {
        let all = part.start / samples..part.end / samples;
        for first in all.clone().step_by(at_a_time) {
            let prompts = first..all.end.min(first + at_a_time);
            let Some(beams) = searcher.run(prompts, observer, stop)? else { return Ok(texts) };
            for text in beams.into_iter().flat_map(|beam| beam.best(search, request.samples)) {
                observer(Event::Finished(&text));
                texts.push(text);
            }
        }
    }
    Ok(texts)
}

/// The state of a beam search.
pub(super) struct Searcher<'a, D: Device> {
    request: &'a Request<'a>,
    search: &'a BeamSearch,
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    amateur: Option<Amateur<'a, D>>,
    at_a_time: usize,
}

impl<'a, D: Device> Searcher<'a, D> {
    /// A searcher with room for `sequences` hypotheses.
    pub(super) fn new(
        generator: &Generator<'a, D>,
        amateur: Option<&'a Model<D>>,
        request: &'a Request<'a>,
        search: &'a BeamSearch,
        sequences: usize,
    ) -> Result<Self, Error> {
        if request.samples > search.texts() {
            let reason = format!(
                "a beam of {} cannot give {} texts for each prompt",
                search.texts(),
                request.samples
            );
            return Err(Error::Strategy { option: "beam width", reason });
        }
        let at_a_time = sequences / search.width;
        let sequences = at_a_time * search.width;
        let capacity = generator.capacity(request);
        let scores = Scores::new(generator.model, sequences)?;
        let memory = Incremental::new(generator.model, sequences, capacity)?;
        let amateur = match amateur {
            Some(model) => Some(Amateur::new(model, sequences, capacity)?),
            None => None,
        };
        Ok(Self { request, search, scores, memory, amateur, at_a_time })
    }

    /// Searches some prompts to completion; `None` if stopped.
    fn run(
        &mut self,
        prompts: Range<usize>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Beam>>, Error> {
        let positions = self.scores.model.decoder.shape.positions;
        let sequence = |prompt: usize| Sequence::new(&self.request.prompts[prompt], positions);
        let begin = |prompt: usize| Beam {
            prompt,
            groups: Group::all(self.search, sequence(prompt)),
            found: Vec::new(),
            explored: Explored::default(),
        };
        let mut beams: Vec<Beam> = prompts.map(begin).collect();
        for iteration in 0..self.search.iterations {
            if iteration > 0 {
                beams.iter_mut().for_each(|beam| beam.restart(self.search, sequence(beam.prompt)));
            }
            for length in 0..self.request.new_tokens {
                if stop() {
                    return Ok(None);
                }
                if beams.iter().all(Beam::is_done) {
                    break;
                }
                let made = self.step(&mut beams, iteration, length)?;
                observer(Event::Step { tokens: made });
            }
        }
        Ok(Some(beams))
    }

    /// Extends every hypothesis by a token.
    fn step(
        &mut self,
        beams: &mut [Beam],
        iteration: usize,
        length: usize,
    ) -> Result<usize, Error> {
        let Self { scores, memory, amateur, search, request, .. } = self;
        let positions = scores.model.decoder.shape.positions;
        let mut hypotheses: Vec<(usize, &mut Hypothesis)> = Vec::new();
        for (place, beam) in beams.iter_mut().enumerate() {
            let first = place * search.width;
            hypotheses.extend(beam.running(length).map(|(slot, text)| (first + slot, text)));
        }
        let feeds: Vec<Feed<'_>> = hypotheses
            .iter_mut()
            .map(|(sequence, hypothesis)| hypothesis.sequence.feed(*sequence, positions))
            .collect();
        memory.advance(scores.model, &feeds)?;
        if let Some(amateur) = amateur {
            amateur.advance(&feeds)?;
        }
        let histories: Vec<&[u32]> =
            hypotheses.iter().map(|(_, hypothesis)| &hypothesis.sequence.history[..]).collect();
        let strategy = request.strategy;
        let counts = search.counts(iteration);
        let found =
            extensions(scores, amateur.as_ref(), strategy, counts, memory.hidden(), &histories)?;
        let cached = hypotheses.iter().map(|(_, hypothesis)| hypothesis.sequence.cached()).max();
        let sequences: Vec<usize> = hypotheses.iter().map(|(sequence, _)| *sequence).collect();
        let made = sequences.len();
        self.select(beams, &sequences, found, cached.unwrap_or(0), length);
        Ok(made)
    }

    /// Lets every beam choose among the extensions of its hypotheses, and reorders the cache.
    fn select(
        &mut self,
        beams: &mut [Beam],
        sequences: &[usize],
        found: Vec<Vec<Extension>>,
        cached: usize,
        length: usize,
    ) {
        let width = self.search.width;
        let mut of_sequence: Vec<Vec<Extension>> =
            (0..self.at_a_time * width).map(|_| Vec::new()).collect();
        for (sequence, found) in sequences.iter().zip(found) {
            of_sequence[*sequence] = found;
        }
        let mut parents: Vec<u32> = (0..(self.at_a_time * width) as u32).collect();
        for (place, beam) in beams.iter_mut().enumerate() {
            let slots = place * width..(place + 1) * width;
            let chosen =
                beam.choose(self.search, self.request, &of_sequence[slots.clone()], length);
            for (slot, parent) in chosen {
                parents[slots.start + slot] = (slots.start + parent) as u32;
            }
        }
        self.memory.reorder(&self.scores.model.device, &parents, cached);
        if let Some(amateur) = &mut self.amateur {
            amateur.reorder(&parents, cached);
        }
    }
}

impl Beam {
    /// Begins the next iteration, which excludes the hypotheses this one explored.
    fn restart(&mut self, search: &BeamSearch, sequence: Sequence) {
        let groups = std::mem::replace(&mut self.groups, Group::all(search, sequence));
        self.found.extend(groups.into_iter().flat_map(|group| group.finished(search)));
        self.explored.close();
    }

    fn is_done(&self) -> bool {
        self.groups.iter().all(|group| group.done)
    }

    /// The hypotheses to extend, with their places in the beam. Before the first token all are the
    /// prompt, which is extended once.
    fn running(&mut self, length: usize) -> impl Iterator<Item = (usize, &mut Hypothesis)> {
        let open = self.groups.iter_mut().filter(|group| !group.done);
        let all = open.flat_map(Group::hypotheses);
        all.take(if length == 0 { 1 } else { usize::MAX })
    }

    /// Chooses group by group. Returns pairs of a place in the beam and the place of its parent.
    fn choose(
        &mut self,
        search: &BeamSearch,
        request: &Request<'_>,
        extensions: &[Vec<Extension>],
        length: usize,
    ) -> Vec<(usize, usize)> {
        let mut used: Vec<u32> = Vec::new();
        let mut parents = Vec::new();
        let Self { groups, explored, .. } = self;
        for group in groups.iter_mut().filter(|group| !group.done) {
            parents.extend(group.choose(search, request, extensions, length, &mut used, explored));
        }
        parents
    }

    /// The best texts of all groups, best first.
    fn best(self, search: &BeamSearch, samples: usize) -> Vec<Continuation> {
        let prompt = self.prompt;
        let mut finished = self.found;
        finished.extend(self.groups.into_iter().flat_map(|group| group.finished(search)));
        finished.sort_by(|left, right| right.0.total_cmp(&left.0));
        let best = finished.into_iter().take(samples).enumerate();
        best.map(|(sample, (_, tokens))| Continuation { prompt, sample, tokens }).collect()
    }
}
