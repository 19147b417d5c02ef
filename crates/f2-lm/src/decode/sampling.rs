//! Sampling: texts are drawn token by token, each independent of the others.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use f2_engine::Device;

use super::scheduler::{Joining, Output, Scheduler};
use super::sequence::RandomStreams;
use super::stop::StopWatch;
use super::{Continuation, Event, Generator, Request, Strategy};
use crate::Error;
use crate::model::Model;

/// Draws the texts whose numbers are in `parts`, part by part, `sequences` at a time.
pub(super) fn sample<D: Device>(
    generator: &Generator<'_, D>,
    amateur: Option<&Model<D>>,
    request: &Request<'_>,
    sequences: usize,
    parts: &mut dyn Iterator<Item = Range<usize>>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Continuation>, Error> {
    // Nobody waits for a first token: prompts are fed whole.
    let prefill = usize::MAX;
    let capacity = generator.capacity(request);
    let mut scheduler = Scheduler::new(generator.model, sequences, capacity, prefill)?;
    if let Some(amateur) = amateur {
        scheduler = scheduler.against(amateur, capacity)?;
    }
    observer(Event::Ready);
    let mut texts = RunningTexts::new(request, scheduler);
    loop {
        if texts.is_idle() {
            let Some(part) = parts.next() else { break };
            texts.waiting = part;
        }
        texts.admit();
        let has_left = texts.drain(observer);
        if texts.scheduler.running() == 0 || (has_left && !texts.waiting.is_empty()) {
            continue;
        }
        if stop() {
            break;
        }
        texts.step(observer)?;
    }
    Ok(texts.finished)
}

/// The texts of a request that are drawn token by token, in one scheduler.
struct RunningTexts<'a, 'r, D: Device> {
    request: &'r Request<'r>,
    scheduler: Scheduler<'a, D>,
    strategy: Arc<Strategy>,
    streams: RandomStreams<'r>,
    /// The numbers of the texts that wait for a slot.
    waiting: Range<usize>,
    /// The text so far of each, if there are stop sequences.
    watches: HashMap<usize, StopWatch<'r>>,
    finished: Vec<Continuation>,
}

impl<'a, 'r, D: Device> RunningTexts<'a, 'r, D> {
    fn new(request: &'r Request<'r>, scheduler: Scheduler<'a, D>) -> Self {
        let strategy = Arc::new(request.strategy.clone());
        let streams = RandomStreams::after(request.earlier, request.prompts, request.samples)
            .repeating(strategy.deterministic);
        Self {
            request,
            scheduler,
            strategy,
            streams,
            waiting: 0..0,
            watches: HashMap::new(),
            finished: Vec::new(),
        }
    }

    /// Whether no text is in progress or waits.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.scheduler.running() == 0
    }

    /// Lets waiting texts join while there is room.
    fn admit(&mut self) {
        let request = self.request;
        while self.scheduler.has_room()
            && let Some(number) = self.waiting.next()
        {
            self.scheduler.join(Joining {
                number,
                prompt: &request.prompts[number / request.samples],
                stream: self.streams.of(number),
                seed: request.seed,
                strategy: self.strategy.clone(),
                new_tokens: request.new_tokens,
                end: request.end,
                alternatives: None,
                score_prompt: false,
            });
        }
    }

    /// Removes the texts that are complete; whether there were any.
    fn drain(&mut self, observer: &mut dyn FnMut(Event<'_>)) -> bool {
        let before = self.finished.len();
        while let Some((number, tokens)) = self.scheduler.take_finished() {
            let samples = self.request.samples;
            let text = Continuation { prompt: number / samples, sample: number % samples, tokens };
            observer(Event::Finished(&text));
            self.finished.push(text);
        }
        self.finished.len() > before
    }

    /// Chooses the next token of every text in progress.
    fn step(&mut self, observer: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        let outputs = self.scheduler.step()?;
        for output in &outputs {
            if let Output::Token { number, token, is_end: false, .. } = output {
                observer(Event::Token { text: *number, token });
                if self.stops(*number, token.id)? {
                    self.scheduler.end(*number);
                }
            }
        }
        observer(Event::Step { tokens: outputs.len() });
        Ok(())
    }

    /// Whether this token completes a stop sequence of a text.
    fn stops(&mut self, number: usize, id: u32) -> Result<bool, Error> {
        let Some((stops, vocabulary)) = self.request.stops else { return Ok(false) };
        let watch = self.watches.entry(number);
        watch.or_insert_with(|| StopWatch::new(stops, vocabulary)).ends(id)
    }
}
