//! The batches of a training split, windows or documents.

use std::ops::Range;

use super::{DocumentRows, TokenSource, TrainingWindows};
use crate::Error;
use crate::config::{BatchConfig, WindowOrder};

/// The batches of a training split.
#[derive(Clone, Debug)]
pub enum TrainingBatches {
    /// Windows over the text in its order, across documents.
    Windows(TrainingWindows),
    /// Documents of similar length.
    Documents(DocumentRows),
}

impl TrainingBatches {
    /// Cuts a split according to `batch`.
    pub fn new(text: &dyn TokenSource, batch: &BatchConfig, seed: u64) -> Result<Self, Error> {
        if text.separator().is_some() && batch.order != WindowOrder::Documents {
            return Err(Error::OrderOfPairs);
        }
        Ok(match batch.order {
            WindowOrder::Shuffled | WindowOrder::Streams => {
                Self::Windows(TrainingWindows::new(text.len(), batch, seed)?)
            }
            WindowOrder::Documents => Self::Documents(DocumentRows::new(text, batch, seed)?),
        })
    }

    /// How many rows an epoch has.
    pub fn count(&self) -> u64 {
        match self {
            Self::Windows(windows) => windows.count(),
            Self::Documents(rows) => rows.count(),
        }
    }

    /// How many targets the batch of step `step` has; padding does not count.
    pub fn targets(&self, step: u64) -> u64 {
        match self {
            Self::Windows(windows) => windows.targets(),
            Self::Documents(rows) => rows.targets(step),
        }
    }

    /// How long the rows of the batch of step `step` are, with their padding.
    pub fn length(&self, step: u64) -> usize {
        match self {
            Self::Windows(windows) => windows.length(),
            Self::Documents(rows) => rows.length(step),
        }
    }

    /// The number of steps from the first whose batches together have at least `tokens` targets.
    pub fn steps_for(&self, tokens: u64) -> u64 {
        match self {
            Self::Windows(windows) => tokens.div_ceil(windows.targets()),
            Self::Documents(rows) => rows.steps_for(tokens),
        }
    }

    /// The number of steps in so many epochs.
    pub fn steps_of_epochs(&self, epochs: f64) -> u64 {
        (epochs * self.count() as f64 / self.size() as f64).ceil() as u64
    }

    /// The mean number of targets and the mean length of a batch, over the first epoch.
    pub fn means(&self) -> [f64; 2] {
        match self {
            Self::Windows(windows) => [windows.targets() as f64, windows.length() as f64],
            Self::Documents(rows) => rows.means(),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Windows(windows) => windows.size(),
            Self::Documents(rows) => rows.size(),
        }
    }

    /// Fills `inputs` and `targets`, each rows × [`length`](Self::length) long, with `rows` of the
    /// batch of step `step`. Positions without a target hold [`IGNORED`](f2_engine::IGNORED).
    pub fn fill(
        &self,
        text: &dyn TokenSource,
        step: u64,
        rows: Range<u64>,
        inputs: &mut [u32],
        targets: &mut [u32],
    ) {
        match self {
            Self::Windows(windows) => windows.fill(text, step, rows, inputs, targets),
            Self::Documents(documents) => documents.fill(text, step, rows, inputs, targets),
        }
    }
}
