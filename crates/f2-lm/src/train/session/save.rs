//! When a session writes checkpoints, and which ones it keeps.

use std::time::Instant;

use f2_engine::Device;
use f2_files::ReadError;

use super::{Session, is_due};
use crate::Error;
use crate::run::Event;
use crate::run::checkpoint::{self, Contents, SavedMoments};
use crate::train::{Ranks, Trainer};

impl<D: Device> Session<'_, D> {
    /// Whether a checkpoint is due, by steps or by the clock; never after a step without a finite
    /// loss, since the parameters may be ruined.
    pub(super) fn save_is_due(&self) -> bool {
        let every_steps = self.run.config.checkpoint.every_steps;
        self.saved != Some(self.state.step)
            && self.state.skipped_in_a_row == 0
            && (self.directive.save || is_due(every_steps, self.state.step))
    }

    /// Whether a checkpoint is due by the clock.
    pub(super) fn clock_asks_to_save(&self) -> bool {
        let minutes = self.run.config.checkpoint.every_minutes;
        minutes > 0.0 && self.last_save.elapsed().as_secs_f64() / 60.0 >= minutes
    }

    /// Saves. If the checkpoint cannot be written, reports why and lets training continue. If its
    /// parts cannot be collected the run ends: the ranks would be out of step.
    pub(super) fn save_or_say_why(&mut self) -> Result<(), Error> {
        let collected = self.trainer.collect()?;
        if let Err(error) = self.write(collected.as_ref()) {
            let reason = error.to_string();
            self.last_save = Instant::now();
            self.reporter.report(&Event::SaveFailed { step: self.state.step, reason });
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), Error> {
        let collected = self.trainer.collect()?;
        self.write(collected.as_ref())
    }

    /// Writes a checkpoint. `collected` are the moments of all ranks, if there are several.
    fn write(&mut self, collected: Option<&[Vec<f32>; 2]>) -> Result<(), Error> {
        self.state.objective = self.trainer.objective.state();
        self.state.seconds = self.seconds();
        let checkpoints = self.run.checkpoints();
        let Trainer { network, moments, ranks, .. } = &mut self.trainer;
        let contents = Contents {
            model: &network.model,
            moments: collected.map_or(SavedMoments::Device(moments), SavedMoments::Host),
            state: &self.state,
            attachments: &self.attachments,
        };
        let write = || checkpoint::save(&checkpoints, &contents);
        match ranks {
            Some(ranks) => drop(ranks.lead(write)?),
            None => write()?,
        }
        let step = self.state.step;
        (self.saved, self.outdated, self.last_save) = (Some(step), false, Instant::now());
        self.reporter.report(&Event::Saved { step });
        if self.evaluated == Some(step) && self.evaluated_finite {
            self.proven = Some(step);
        }
        let best = self.state.best.map_or(step, |best| best.step);
        // Only the next step shows whether this update ruined the parameters: keep the last proven.
        let proven = self.proven.unwrap_or(step);
        if !self.leads() {
            return Ok(());
        }
        Ok(checkpoint::prune(&checkpoints, &[step, best, proven])?)
    }

    /// Removes the checkpoint that was written after the last proven one. One of an earlier session
    /// stays if it is the only one. Returns the step of the newest good one, if there is any.
    pub(super) fn remove_ruined(&mut self) -> Result<Option<u64>, Error> {
        let checkpoints = self.run.checkpoints();
        let mut steps = checkpoint::steps(&checkpoints).map_err(ReadError::of(&checkpoints))?;
        let leads = self.leads();
        if leads && self.saved != self.proven && steps.last().copied() == self.saved {
            steps.pop();
            if !steps.is_empty() || self.saved != self.restored {
                checkpoint::prune(&checkpoints, &steps)?;
            }
        }
        Ok(steps.last().copied())
    }

    /// Whether this process writes the run.
    fn leads(&self) -> bool {
        self.trainer.ranks.as_ref().is_none_or(Ranks::leads)
    }

    pub(super) fn save_unless_saved(&mut self) -> Result<(), Error> {
        let is_saved = self.saved == Some(self.state.step) && !self.outdated;
        if is_saved { Ok(()) } else { self.save() }
    }
}
