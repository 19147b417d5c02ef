//! Beam search: the most likely texts rather than the most likely next tokens; with several groups
//! that avoid each other's tokens, diverse beam search (Vijayakumar et al., 2018).

mod extend;
mod group;

use std::ops::Range;

use f2_engine::Device;

use self::extend::{Extension, extensions};
use self::group::{Group, Hypothesis};
use super::generator::{Generator, Request};
use super::scores::Scores;
use super::sequence::Sequence;
use super::{BeamSearch, Continuation, Event};
use crate::Error;
use crate::model::{Feed, Incremental};

/// One prompt's beam.
struct Beam {
    prompt: usize,
    groups: Vec<Group>,
}

/// Searches the prompts of some texts, part by part and as many at a time as `sequences` sequences
/// hold beams of.
pub(super) fn search<D: Device>(
    generator: &Generator<'_, D>,
    request: &Request<'_>,
    search: &BeamSearch,
    sequences: usize,
    parts: &mut dyn Iterator<Item = Range<usize>>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Continuation>, Error> {
    if request.samples > search.width {
        let reason = format!(
            "a beam of {} cannot give {} texts for each prompt",
            search.width, request.samples
        );
        return Err(Error::Strategy { option: "beam width", reason });
    }
    let at_a_time = sequences / search.width;
    let mut searcher = Searcher::new(generator, request, search, at_a_time)?;
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

struct Searcher<'a, D: Device> {
    request: &'a Request<'a>,
    search: &'a BeamSearch,
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    at_a_time: usize,
}

impl<'a, D: Device> Searcher<'a, D> {
    fn new(
        generator: &Generator<'a, D>,
        request: &'a Request<'a>,
        search: &'a BeamSearch,
        at_a_time: usize,
    ) -> Result<Self, Error> {
        let sequences = at_a_time * search.width;
        let scores = Scores::new(generator.model, sequences)?;
        let memory = Incremental::new(generator.model, sequences, generator.capacity(request))?;
        Ok(Self { request, search, scores, memory, at_a_time })
    }

    /// Searches some prompts to their ends; `None` if stopped.
    fn run(
        &mut self,
        prompts: Range<usize>,
        observer: &mut dyn FnMut(Event<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Beam>>, Error> {
        let positions = self.scores.model.decoder.shape.positions;
        let begin = |prompt: usize| {
            let sequence = Sequence::new(&self.request.prompts[prompt], positions);
            Beam { prompt, groups: Group::all(self.search, sequence) }
        };
        let mut beams: Vec<Beam> = prompts.map(begin).collect();
        for length in 0..self.request.new_tokens {
            if stop() {
                return Ok(None);
            }
            if beams.iter().all(Beam::is_done) {
                break;
            }
            let made = self.step(&mut beams, length)?;
            observer(Event::Step { tokens: made });
        }
        Ok(Some(beams))
    }

    /// Extends every hypothesis by a token.
    fn step(&mut self, beams: &mut [Beam], length: usize) -> Result<usize, Error> {
        let Self { scores, memory, search, request, .. } = self;
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
        let histories: Vec<&[u32]> =
            hypotheses.iter().map(|(_, hypothesis)| &hypothesis.sequence.history[..]).collect();
        let strategy = request.strategy;
        let found = extensions(scores, strategy, search, memory.hidden(), &histories)?;
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
    }
}

impl Beam {
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
        for group in self.groups.iter_mut().filter(|group| !group.done) {
            parents.extend(group.choose(search, request, extensions, length, &mut used));
        }
        parents
    }

    /// The best texts of all groups, best first.
    fn best(self, search: &BeamSearch, samples: usize) -> Vec<Continuation> {
        let prompt = self.prompt;
        let mut finished: Vec<_> =
            self.groups.into_iter().flat_map(|group| group.finished(search)).collect();
        finished.sort_by(|left, right| right.0.total_cmp(&left.0));
        let best = finished.into_iter().take(samples).enumerate();
        best.map(|(sample, (_, tokens))| Continuation { prompt, sample, tokens }).collect()
    }
}
