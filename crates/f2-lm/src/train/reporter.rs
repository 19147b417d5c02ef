//! Reports every event of a session to the log, the curves and the caller.

use f2_files::{WriteError, disk};

use crate::Error;
use crate::run::{Event, EventLog, RunFolder, TensorBoard};

/// Reports events to the log, the curves and the caller. If the disk is full, the first two lose
/// events and training continues.
pub(super) struct Reporter<'a> {
    log: EventLog,
    /// `None` if another rank writes them.
    curves: Option<TensorBoard>,
    observer: &'a mut dyn FnMut(&Event),
}

impl<'a> Reporter<'a> {
    /// The reporter of a rank: that of rank 0 writes the log and the curves of the run.
    pub(super) fn new(
        run: &RunFolder,
        rank: usize,
        observer: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, Error> {
        if rank > 0 { Self::of_rank(run, rank, observer) } else { Self::open(run, observer) }
    }

    fn open(run: &RunFolder, observer: &'a mut dyn FnMut(&Event)) -> Result<Self, Error> {
        let (events, tensorboard) = (run.events(), run.tensorboard());
        let log = EventLog::open(&events).map_err(WriteError::of(&events))?;
        let curves = TensorBoard::create(&tensorboard).map_err(WriteError::of(&tensorboard))?;
        Ok(Self { log, curves: Some(curves), observer })
    }

    /// The reporter of a rank other than 0: a log of its own.
    fn of_rank(
        run: &RunFolder,
        rank: usize,
        observer: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, Error> {
        let path = run.rank_log(rank);
        let folder = path.parent().unwrap_or(run.path());
        disk::create_folders(folder).map_err(WriteError::of(folder))?;
        let log = EventLog::open(&path).map_err(WriteError::of(&path))?;
        Ok(Self { log, curves: None, observer })
    }

    pub(super) fn report(&mut self, event: &Event) {
        // Neither failure is worth stopping for; a checkpoint on the same disk will fail visibly.
        let _ = self.log.append(event);
        if let Some(curves) = &mut self.curves {
            for (tag, step, value) in curve_points(event) {
                let _ = curves.scalar(tag, step, value);
            }
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
