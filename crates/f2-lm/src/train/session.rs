use std::path::Path;
use std::time::Instant;

use f2_engine::Device;

use super::Trainer;
use crate::Error;
use crate::batch::{EvaluationWindows, TokenSource, TrainingWindows};
use crate::config::TrainConfig;
use crate::run::checkpoint::{self, Best, Contents, TrainingState};
use crate::run::{Event, EventLog, RunFolder, TensorBoard};
use crate::schedule::{Budget, Schedule};

/// Steps without a finite loss, one after the other, that end a run.
const MOST_SKIPPED: u32 = 5;

/// The splits a run reads.
pub struct Text<'a> {
    /// What is learnt.
    pub train: &'a dyn TokenSource,
    /// What perplexity is taken on; may be empty.
    pub valid: &'a dyn TokenSource,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run's limit was reached.
    Complete,
    /// The limit had been reached before.
    AlreadyComplete,
    /// The caller asked to stop; everything is saved.
    Stopped,
}

/// One stretch of training, from a start or a checkpoint to the run's limit.
pub struct Session<'a, D: Device> {
    /// The model and its optimiser.
    pub trainer: Trainer<D>,
    /// Where training stands.
    pub state: TrainingState,
    run: RunFolder,
    text: Text<'a>,
    windows: TrainingWindows,
    /// None where there is no text to evaluate on.
    evaluation: Option<EvaluationWindows>,
    budget: Budget,
    schedule: Schedule,
    attachments: Vec<(String, Vec<u8>)>,
    reporter: Reporter<'a>,
    began: Instant,
    seconds_before: f64,
    last_save: Instant,
    /// The step of the newest checkpoint and of the newest evaluation.
    saved: Option<u64>,
    evaluated: Option<u64>,
}

impl<'a, D: Device> Session<'a, D> {
    /// Makes ready to train. `attachments` go into every checkpoint; `observer` is told all that
    /// happens.
    pub fn new(
        trainer: Trainer<D>,
        run: RunFolder,
        text: Text<'a>,
        attachments: Vec<(String, Vec<u8>)>,
        threads: usize,
        observer: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, Error> {
        let config = &run.config;
        let (windows, evaluation) = cut(config, text.train, text.valid)?;
        let budget = limited(config, &windows)?;
        let state = TrainingState::start(trainer.device.name(), threads);
        let reporter = Reporter::open(&run, observer)?;
        let schedule = Schedule::new(&config.schedule);
        let now = Instant::now();
        Ok(Self {
            trainer,
            state,
            run,
            text,
            windows,
            evaluation,
            budget,
            schedule,
            attachments,
            reporter,
            began: now,
            seconds_before: 0.0,
            last_save: now,
            saved: None,
            evaluated: None,
        })
    }

    /// Goes back to where a checkpoint stands. `folder` and the state read from it come from
    /// [`checkpoint::open`].
    pub fn restore(&mut self, folder: &Path, state: TrainingState) -> Result<(), Error> {
        let Trainer { device, decoder, weights, moments, objective, .. } = &mut self.trainer;
        checkpoint::load_model(folder, device, &decoder.layout, weights)?;
        checkpoint::load_moments(folder, device, &decoder.layout, moments)?;
        objective.restore(&state.objective).map_err(|reason| Error::BadCheckpoint {
            path: folder.join(checkpoint::STATE),
            reason,
        })?;
        self.seconds_before = state.seconds;
        self.saved = Some(state.step);
        let threads = self.state.threads;
        self.state = TrainingState { threads, ..state };
        Ok(())
    }

    /// Trains to the limit, or until `stop` says so, which lets the step in progress finish.
    pub fn run(&mut self, stop: &dyn Fn() -> bool) -> Result<Ending, Error> {
        self.began = Instant::now();
        self.last_save = self.began;
        if self.is_over() {
            return Ok(Ending::AlreadyComplete);
        }
        self.reporter
            .report(&Event::Started { step: self.state.step, last_step: self.budget.steps });
        while !self.is_over() {
            self.step()?;
            if stop() {
                return self.stop();
            }
            let evaluation_due = is_due(self.run.config.evaluation.every_steps, self.state.step);
            if evaluation_due && !self.evaluate(stop)? {
                return self.stop();
            }
            if self.save_is_due() {
                self.save_or_say_why();
            }
        }
        self.finish(stop)
    }

    fn is_over(&self) -> bool {
        self.budget.is_spent(self.state.step, self.seconds())
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.began.elapsed().as_secs_f64()
    }

    fn step(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let progress = self.budget.progress(self.state.step, self.seconds());
        let fraction = self.schedule.fraction(self.state.step, progress);
        let update = self.run.config.optimiser.update(self.state.updates + 1, fraction);
        let report = self.trainer.step(&self.windows, self.text.train, self.state.step, update)?;
        self.state.step += 1;
        self.state.tokens += self.run.config.batch.tokens_per_step() as u64;
        self.state.seconds = self.seconds();
        if !report.is_finite() {
            return self.skip(report.loss);
        }
        self.state.updates += 1;
        self.state.skipped_in_a_row = 0;
        self.reporter.report(&Event::Step {
            step: self.state.step,
            loss: f64::from(report.loss),
            gradient_norm: f64::from(report.gradient_norm),
            learning_rate: update.learning_rate,
            tokens: self.state.tokens,
            seconds: self.state.seconds,
            step_seconds: began.elapsed().as_secs_f64(),
            operations: report.operations,
            progress: self.budget.progress(self.state.step, self.state.seconds),
        });
        Ok(())
    }

    /// Counts a step that changed nothing; too many in a row end the run, unsaved, so that the
    /// last checkpoint stays the last good one.
    fn skip(&mut self, loss: f32) -> Result<(), Error> {
        self.state.skipped_in_a_row += 1;
        let (step, in_a_row) = (self.state.step, self.state.skipped_in_a_row);
        self.reporter.report(&Event::Skipped { step, loss: loss.to_string(), in_a_row });
        if in_a_row >= MOST_SKIPPED {
            self.reporter.report(&Event::Ended { step, complete: false });
            return Err(Error::NotFinite { step, in_a_row });
        }
        Ok(())
    }

    /// Scores the validation split and saves a new best. False when it was stopped on the way.
    fn evaluate(&mut self, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let Some(windows) = &self.evaluation else { return Ok(true) };
        let Some(loss) = self.trainer.evaluate(windows, self.text.valid, stop)? else {
            return Ok(false);
        };
        let (step, perplexity) = (self.state.step, loss.exp());
        let best = self.state.best.is_none_or(|best| perplexity < best.perplexity);
        if best {
            self.state.best = Some(Best { step, perplexity });
        }
        self.evaluated = Some(step);
        let tokens = windows.scored();
        self.reporter.report(&Event::Evaluated { step, loss, perplexity, tokens, best });
        if best {
            self.save_or_say_why();
        }
        Ok(true)
    }

    fn save_is_due(&self) -> bool {
        let policy = &self.run.config.checkpoint;
        let minutes = self.last_save.elapsed().as_secs_f64() / 60.0;
        let clock = policy.every_minutes > 0.0 && minutes >= policy.every_minutes;
        self.saved != Some(self.state.step)
            && (clock || is_due(policy.every_steps, self.state.step))
    }

    /// A checkpoint that cannot be written is no reason to lose what is being learnt.
    fn save_or_say_why(&mut self) {
        if let Err(error) = self.save() {
            let reason = error.to_string();
            self.last_save = Instant::now();
            self.reporter.report(&Event::SaveFailed { step: self.state.step, reason });
        }
    }

    fn save(&mut self) -> Result<(), Error> {
        self.state.objective = self.trainer.objective.state();
        self.state.seconds = self.seconds();
        let checkpoints = self.run.checkpoints();
        let contents = Contents {
            device: &self.trainer.device,
            layout: &self.trainer.decoder.layout,
            weights: &self.trainer.weights,
            moments: &self.trainer.moments,
            state: &self.state,
            attachments: &self.attachments,
        };
        checkpoint::save(&checkpoints, &contents)?;
        let step = self.state.step;
        (self.saved, self.last_save) = (Some(step), Instant::now());
        self.reporter.report(&Event::Saved { step });
        let best = self.state.best.map_or(step, |best| best.step);
        checkpoint::prune(&checkpoints, &[step, best])
            .map_err(|source| Error::WriteFile { path: checkpoints, source })
    }

    fn save_unless_saved(&mut self) -> Result<(), Error> {
        if self.saved == Some(self.state.step) { Ok(()) } else { self.save() }
    }

    fn stop(&mut self) -> Result<Ending, Error> {
        self.save_unless_saved()?;
        self.reporter.report(&Event::Ended { step: self.state.step, complete: false });
        Ok(Ending::Stopped)
    }

    fn finish(&mut self, stop: &dyn Fn() -> bool) -> Result<Ending, Error> {
        self.save_unless_saved()?;
        if self.evaluated != Some(self.state.step) && !self.evaluate(stop)? {
            return self.stop();
        }
        self.save_unless_saved()?;
        self.reporter.report(&Event::Ended { step: self.state.step, complete: true });
        Ok(Ending::Complete)
    }
}

/// Refuses splits that are too short for the windows asked for. Returns how many windows the
/// training split has.
pub fn check_text(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<u64, Error> {
    cut(config, train, valid).map(|(windows, _)| windows.count())
}

/// [`check_text`], and that something will end the run: all that can be known to fail before a
/// folder is made for it.
pub fn check_run(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<(), Error> {
    cut(config, train, valid).and_then(|(windows, _)| limited(config, &windows)).map(drop)
}

fn limited(config: &TrainConfig, windows: &TrainingWindows) -> Result<Budget, Error> {
    let budget = Budget::new(&config.budget, &config.batch, windows.count());
    if budget.is_endless() { Err(Error::Endless) } else { Ok(budget) }
}

/// The windows of both splits; none of an empty validation split.
fn cut(
    config: &TrainConfig,
    train: &dyn TokenSource,
    valid: &dyn TokenSource,
) -> Result<(TrainingWindows, Option<EvaluationWindows>), Error> {
    let windows = TrainingWindows::new(train.len(), &config.batch, config.seed)?;
    if valid.is_empty() {
        return Ok((windows, None));
    }
    let (sequence, max_tokens) = (config.batch.sequence, config.evaluation.max_tokens);
    let evaluation = EvaluationWindows::new("valid", valid.len(), sequence, max_tokens)?;
    Ok((windows, Some(evaluation)))
}

fn is_due(every: u64, step: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}

/// Tells the log, the curves and the caller what happens. A full disk silences the first two,
/// never the training.
struct Reporter<'a> {
    log: EventLog,
    curves: TensorBoard,
    observer: &'a mut dyn FnMut(&Event),
}

impl<'a> Reporter<'a> {
    fn open(run: &RunFolder, observer: &'a mut dyn FnMut(&Event)) -> Result<Self, Error> {
        let log = EventLog::open(&run.events())
            .map_err(|source| Error::WriteFile { path: run.events(), source })?;
        let curves = TensorBoard::create(&run.tensorboard())
            .map_err(|source| Error::WriteFile { path: run.tensorboard(), source })?;
        Ok(Self { log, curves, observer })
    }

    fn report(&mut self, event: &Event) {
        // Neither file is worth stopping for; a checkpoint on the same disk will speak up.
        let _ = self.log.append(event);
        for (tag, step, value) in curve_points(event) {
            let _ = self.curves.scalar(tag, step, value);
        }
        (self.observer)(event);
    }
}

fn curve_points(event: &Event) -> Vec<(&'static str, u64, f64)> {
    match *event {
        Event::Step { step, loss, gradient_norm, learning_rate, .. } => vec![
            ("train/loss", step, loss),
            ("train/gradient_norm", step, gradient_norm),
            ("train/learning_rate", step, learning_rate),
        ],
        Event::Evaluated { step, loss, perplexity, .. } => {
            vec![("valid/loss", step, loss), ("valid/perplexity", step, perplexity)]
        }
        _ => Vec::new(),
    }
}
