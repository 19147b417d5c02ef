//! A session of training: its loop, evaluations and checkpoints.

mod save;

use std::path::Path;
use std::time::Instant;

use f2_engine::Device;

use super::parallel::Directive;
use super::reporter::Reporter;
use super::splits::{cut, limited};
use super::{Splits, Trainer};
use crate::Error;
use crate::batch::TrainingBatches;
use crate::perplexity::{Contexts, ScoredWindows};
use crate::run::checkpoint::{self, Best, TrainingState};
use crate::run::{Event, RunFolder};
use crate::schedule::{Budget, Schedule};

/// Consecutive steps without a finite loss that end a run.
const MOST_SKIPPED: u32 = 5;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run's limit was reached.
    Complete,
    /// The limit had been reached before.
    AlreadyComplete,
    /// The caller stopped it; everything is saved.
    Stopped,
}

/// A session of training, from a start or a checkpoint to the run's limit.
pub struct Session<'a, D: Device> {
    /// The model and its optimiser.
    pub trainer: Trainer<D>,
    /// The training state.
    pub state: TrainingState,
    run: RunFolder,
    splits: Splits<'a>,
    batches: TrainingBatches,
    /// `None` if the validation split is empty.
    evaluation: Option<ScoredWindows>,
    budget: Budget,
    schedule: Schedule,
    attachments: Vec<(String, Vec<u8>)>,
    reporter: Reporter<'a>,
    /// The latest one, from rank 0.
    directive: Directive,
    began: Instant,
    seconds_before: f64,
    last_save: Instant,
    /// The step of the newest checkpoint.
    saved: Option<u64>,
    /// Whether that checkpoint lacks the outcome of an evaluation made since.
    outdated: bool,
    /// The step of the checkpoint this session continues from.
    restored: Option<u64>,
    /// The step of the newest evaluation.
    evaluated: Option<u64>,
    /// Whether that evaluation gave a number.
    evaluated_finite: bool,
    /// The step of the newest checkpoint whose parameters gave a finite loss afterwards.
    proven: Option<u64>,
}

impl<'a, D: Device> Session<'a, D> {
    /// A session before its first step. `attachments` go into every checkpoint; `observer` is
    /// called with every event.
    pub fn new(
        mut trainer: Trainer<D>,
        run: RunFolder,
        splits: Splits<'a>,
        attachments: Vec<(String, Vec<u8>)>,
        threads: usize,
        observer: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, Error> {
        let rank = trainer.ranks.as_ref().map_or(0, |ranks| ranks.control.rank());
        let prepared =
            cut(&run.config, splits.train, splits.valid).and_then(|(batches, windows)| {
                let budget = limited(&run.config, &batches)?;
                Ok((batches, windows, budget, Reporter::new(&run, rank, observer)?))
            });
        let (batches, evaluation, budget, reporter) =
            prepared.inspect_err(|error| trainer.tell(error))?;
        if let Some(token) = splits.end_of_text {
            trainer.objective.expect_end_of_text(token);
        }
        let mut state = TrainingState::start(trainer.network.model.device.name(), threads);
        state.trained_on(Contexts::of_text(splits.train, &run.config.batch));
        let schedule = Schedule::new(&run.config.schedule);
        let now = Instant::now();
        Ok(Self {
            trainer,
            state,
            run,
            splits,
            batches,
            evaluation,
            budget,
            schedule,
            attachments,
            reporter,
            directive: Directive::default(),
            began: now,
            seconds_before: 0.0,
            last_save: now,
            saved: None,
            outdated: false,
            restored: None,
            evaluated: None,
            evaluated_finite: false,
            proven: None,
        })
    }

    /// Restores a checkpoint. `folder` and the state read from it come from
    /// [`checkpoint::open`].
    pub fn restore(&mut self, folder: &Path, state: TrainingState) -> Result<(), Error> {
        let slice = self.trainer.slice();
        let Trainer { network, moments, objective, .. } = &mut self.trainer;
        checkpoint::load_model(folder, &mut network.model)?;
        checkpoint::load_moments(folder, &network.model, &slice, moments)?;
        objective.restore(&state.objective).map_err(|reason| Error::BadCheckpoint {
            path: folder.join(checkpoint::STATE),
            reason,
        })?;
        self.seconds_before = state.seconds;
        (self.saved, self.restored) = (Some(state.step), Some(state.step));
        let threads = self.state.threads;
        self.state = TrainingState { threads, ..state };
        self.state.trained_on(Contexts::of_text(self.splits.train, &self.run.config.batch));
        Ok(())
    }

    /// Trains to the limit, or until `stop` returns true; the step in progress is finished.
    pub fn run(&mut self, stop: &dyn Fn() -> bool) -> Result<Ending, Error> {
        self.began = Instant::now();
        self.last_save = self.began;
        self.poll(stop)?;
        if self.is_over() && !self.state.evaluation_due {
            return Ok(Ending::AlreadyComplete);
        }
        self.reporter
            .report(&Event::Started { step: self.state.step, last_step: self.budget.steps });
        if self.state.evaluation_due && !self.make_up_evaluation(stop)? {
            return self.stop();
        }
        while !self.is_over() {
            self.step()?;
            self.poll(stop)?;
            self.state.evaluation_due = self.evaluates_now();
            if self.directive.stop {
                return self.stop();
            }
            let in_between = is_due(self.run.config.evaluation.every_steps, self.state.step);
            if in_between && !self.evaluate(stop)? {
                return self.stop();
            }
            if self.save_is_due() {
                self.save_or_say_why()?;
                self.poll(stop)?;
            }
        }
        self.finish(stop)
    }

    /// Updates the directive from the clock and the user; rank 0 decides for all.
    fn poll(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let own =
            Directive { seconds: self.seconds(), stop: stop(), save: self.clock_asks_to_save() };
        self.directive = match &mut self.trainer.ranks {
            Some(ranks) => ranks.follow(own)?,
            None => own,
        };
        Ok(())
    }

    /// Makes the evaluation in which, or before which, the previous session was stopped. The
    /// checkpoint lacks its outcome, and has to be written again.
    fn make_up_evaluation(&mut self, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        self.outdated = true;
        let made = self.evaluate(stop)?;
        self.outdated &= made;
        if made && self.evaluated_finite {
            self.proven = self.saved;
        }
        Ok(made)
    }

    /// Whether the step just made is followed by an evaluation.
    fn evaluates_now(&self) -> bool {
        let in_between = is_due(self.run.config.evaluation.every_steps, self.state.step);
        self.evaluation.is_some() && (in_between || self.is_over())
    }

    fn is_over(&self) -> bool {
        self.budget.is_spent(self.state.step, self.directive.seconds) || self.is_patience_spent()
    }

    fn is_patience_spent(&self) -> bool {
        let patience = self.run.config.evaluation.patience;
        patience > 0 && self.state.evaluations_since_best >= patience
    }

    /// Whether a lower perplexity is a better model. Fine-tuning trades perplexity for
    /// diversity, so its best is its last, unless early stopping is set.
    fn watches_perplexity(&self) -> bool {
        let config = &self.run.config;
        !config.objective.name.fine_tunes() || config.evaluation.patience > 0
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.began.elapsed().as_secs_f64()
    }

    fn step(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let progress = self.budget.progress(self.state.step, self.directive.seconds);
        let fraction = self.schedule.fraction(self.state.step, progress);
        let update = self.run.config.optimiser.update(self.state.updates + 1, fraction);
        let (step, ahead) = (self.state.step, self.is_followed_at_once());
        let report = self.trainer.step(&self.batches, self.splits.train, step, update, ahead)?;
        self.state.tokens += self.batches.targets(self.state.step);
        self.state.step += 1;
        self.state.seconds = self.seconds();
        if !report.is_finite() {
            return self.skip(report.loss);
        }
        self.state.updates += 1;
        self.state.skipped_in_a_row = 0;
        self.proven = self.saved;
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

    /// Whether the next step is directly followed by another one, as far as is known.
    fn is_followed_at_once(&self) -> bool {
        let next = self.state.step + 1;
        let evaluation_due = is_due(self.run.config.evaluation.every_steps, next);
        !evaluation_due && !self.budget.is_spent(next, self.directive.seconds)
    }

    /// Counts a step that changed nothing; too many in a row end the run.
    fn skip(&mut self, loss: f32) -> Result<(), Error> {
        self.state.skipped_in_a_row += 1;
        let (step, in_a_row) = (self.state.step, self.state.skipped_in_a_row);
        self.reporter.report(&Event::Skipped { step, loss: loss.to_string(), in_a_row });
        if in_a_row >= MOST_SKIPPED { Err(self.diverged()?) } else { Ok(()) }
    }

    /// Ends the run without saving, and leaves the last good checkpoint as the newest.
    fn diverged(&mut self) -> Result<Error, Error> {
        let (step, in_a_row) = (self.state.step, self.state.skipped_in_a_row);
        let kept = self.remove_ruined()?;
        self.reporter.report(&Event::Ended { step, complete: false });
        Ok(Error::NotFinite { step, in_a_row, kept })
    }

    /// Scores the validation split and saves a new best. Returns false if it was stopped.
    fn evaluate(&mut self, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let Some(windows) = &self.evaluation else { return Ok(true) };
        let Some(likelihood) = self.trainer.evaluate(windows, self.splits.valid, stop)? else {
            return Ok(false);
        };
        let (loss, tokens) = (likelihood.mean(), likelihood.scored);
        let (step, perplexity) = (self.state.step, loss.exp());
        self.state.evaluation_due = false;
        let better = self.state.best.is_none_or(|best| perplexity < best.perplexity);
        // A perplexity that is not finite is never the best.
        let best = perplexity.is_finite() && better && self.watches_perplexity();
        if best {
            self.state.best = Some(Best { step, perplexity });
            self.state.evaluations_since_best = 0;
        } else {
            self.state.evaluations_since_best += 1;
        }
        self.evaluated = Some(step);
        self.evaluated_finite = loss.is_finite();
        self.reporter.report(&Event::Evaluated { step, loss, perplexity, tokens, best });
        if best {
            self.save_or_say_why()?;
        }
        self.poll(stop)?;
        Ok(true)
    }

    fn stop(&mut self) -> Result<Ending, Error> {
        self.save_unless_saved()?;
        self.reporter.report(&Event::Ended { step: self.state.step, complete: false });
        Ok(Ending::Stopped)
    }

    /// Makes the last evaluation and saves. A run whose last steps had no finite loss has diverged,
    /// unless the evaluation is finite.
    fn finish(&mut self, stop: &dyn Fn() -> bool) -> Result<Ending, Error> {
        if self.evaluated != Some(self.state.step) && !self.evaluate(stop)? {
            return self.stop();
        }
        if self.state.skipped_in_a_row > 0 && !self.evaluated_finite {
            return Err(self.diverged()?);
        }
        self.save_unless_saved()?;
        self.reporter.report(&Event::Ended { step: self.state.step, complete: true });
        Ok(Ending::Complete)
    }
}

fn is_due(every: u64, step: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}
