//! The thread of a model: takes jobs, drives the scheduler, sends tokens back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use f2_engine::Device;
use f2_lm::Error;
use f2_lm::decode::{Event, Generator, Joining, Output, Request, Scheduler};

use crate::Served;
use crate::job::{Job, Jobs, Piece};

/// Maximum number of prompt tokens fed in one step, which limits how long other sequences wait.
const PREFILL: usize = 512;

/// Loads a model and works on its jobs until no sender is left. `ready` receives the number of
/// sequences in a batch.
pub fn work<D: Device>(
    device: D,
    jobs: Jobs,
    batch: Option<usize>,
    ready: impl FnOnce(usize),
) -> Result<(), Error> {
    let Jobs { served, receiver } = jobs;
    let model = served.saved.load(device)?;
    let positions = served.saved.shape.positions;
    let slots = Scheduler::fitting_slots(&model, positions, batch)?;
    let mut scheduler = Scheduler::new(&model, slots, positions, PREFILL)?;
    let generator = Generator { model: &model };
    let served = &*served;
    let mut desk = Desk { served, texts: HashMap::new(), waiting: VecDeque::new(), next: 0 };
    ready(slots);
    loop {
        loop {
            let job = if desk.is_idle() {
                receiver.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                receiver.try_recv()
            };
            match job {
                Ok(job) => desk.take(job),
                Err(TryRecvError::Disconnected) if desk.is_idle() => return Ok(()),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if let Some(job) = desk.next_search() {
            desk.search(&job, &generator, &mut scheduler);
        }
        desk.turn(&mut scheduler);
    }
}

/// The texts in progress and those that wait.
struct Desk<'a> {
    served: &'a Served,
    /// Texts in the scheduler, by their numbers there.
    texts: HashMap<usize, Place>,
    waiting: VecDeque<Place>,
    /// The next text's number.
    next: usize,
}

/// A text of a job.
#[derive(Clone)]
struct Place {
    job: Arc<Job>,
    text: usize,
    came: Instant,
    /// Whether its first token has been chosen.
    begun: bool,
}

impl Place {
    fn is_over(&self) -> bool {
        self.job.is_over(self.text)
    }
}

impl Desk<'_> {
    fn is_idle(&self) -> bool {
        self.texts.is_empty() && self.waiting.is_empty()
    }

    fn take(&mut self, job: Job) {
        let (job, came) = (Arc::new(job), Instant::now());
        // A search is one piece of work.
        let places = if job.strategy.is_search() { 1 } else { job.texts() };
        self.served.end_waiting(job.texts() - places);
        self.waiting.extend((0..places).map(|text| Place {
            job: job.clone(),
            text,
            came,
            begun: false,
        }));
    }

    /// The job at the head of the queue, if it is a search.
    fn next_search(&mut self) -> Option<Arc<Job>> {
        self.pop(|job| job.strategy.is_search()).map(|place| place.job)
    }

    /// Takes the head of the queue if its job is `wanted`.
    fn pop(&mut self, wanted: impl Fn(&Job) -> bool) -> Option<Place> {
        self.waiting.front().filter(|place| wanted(&place.job))?;
        self.served.end_waiting(1);
        self.waiting.pop_front()
    }

    /// One step of the batch, in which texts join and leave. A failure is reported to every job
    /// with a text in progress.
    fn turn<D: Device>(&mut self, scheduler: &mut Scheduler<'_, D>) {
        self.leave(scheduler);
        self.join(scheduler);
        if scheduler.running() > 0 {
            match scheduler.step() {
                Ok(outputs) => outputs.into_iter().for_each(|output| self.deliver(output)),
                Err(error) => self.fail(scheduler, &error),
            }
        }
        while let Some((number, _)) = scheduler.take_finished() {
            if let Some(Place { job, text, .. }) = self.texts.remove(&number) {
                job.send(Piece::Finished { text });
            }
        }
        self.served.metrics.running.set(scheduler.running() as u64);
    }

    /// Removes texts that are over.
    fn leave<D: Device>(&mut self, scheduler: &mut Scheduler<'_, D>) {
        let Self { texts, waiting, served, .. } = self;
        scheduler.remove(|number| {
            let over = texts.get(&number).is_none_or(Place::is_over);
            if over {
                texts.remove(&number);
            }
            over
        });
        let before = waiting.len();
        waiting.retain(|place| !place.is_over());
        served.end_waiting(before - waiting.len());
    }

    /// Fills free places of the batch, first come, first served.
    fn join<D: Device>(&mut self, scheduler: &mut Scheduler<'_, D>) {
        while scheduler.has_room() {
            let Some(place) = self.pop(|job| !job.strategy.is_search()) else { break };
            let (job, text) = (&place.job, place.text);
            let number = self.next;
            self.next += 1;
            scheduler.join(Joining {
                number,
                prompt: &job.prompts[text / job.samples],
                stream: job.streams[text],
                seed: job.seed,
                strategy: job.strategy.clone(),
                new_tokens: job.new_tokens,
                end: job.end,
                alternatives: job.alternatives,
                score_prompt: job.score_prompts,
            });
            self.texts.insert(number, place);
        }
    }

    fn deliver(&mut self, output: Output) {
        let (Output::Prompt { number, .. } | Output::Token { number, .. }) = output;
        let Some(Place { job, text, came, .. }) = self.texts.get(&number).cloned() else { return };
        job.send(match output {
            Output::Prompt { scores, .. } => Piece::Prompt { text, scores },
            Output::Token { token, alternatives, is_end, .. } => {
                self.served.metrics.tokens.add(1);
                if let Some(place) = self.texts.get_mut(&number).filter(|place| !place.begun) {
                    place.begun = true;
                    self.served.metrics.first_token.observe(came.elapsed());
                }
                Piece::Token { text, token, alternatives, is_end }
            }
        });
    }

    fn fail<D: Device>(&mut self, scheduler: &mut Scheduler<'_, D>, error: &Error) {
        scheduler.remove(|_| true);
        for (_, Place { job, .. }) in self.texts.drain() {
            job.send(Piece::Failed(error.to_string()));
        }
    }

    /// Runs a search; the batch continues between its passes.
    fn search<D: Device>(
        &mut self,
        job: &Arc<Job>,
        generator: &Generator<'_, D>,
        scheduler: &mut Scheduler<'_, D>,
    ) {
        let request = Request {
            prompts: &job.prompts,
            samples: job.samples,
            new_tokens: job.new_tokens,
            strategy: &job.strategy,
            seed: job.seed,
            end: job.end,
            stops: None,
            earlier: &[],
            batch: Some(1),
        };
        let mut observer = |event: Event<'_>| {
            if let Event::Step { tokens } = event {
                self.served.metrics.tokens.add(tokens as u64);
                self.turn(scheduler);
            }
        };
        let found = generator.generate(&request, &mut observer, &|| job.pieces.is_closed());
        job.send(match found {
            Ok(generated) => Piece::Beams(generated.texts),
            Err(error) => Piece::Failed(error.to_string()),
        });
    }
}
