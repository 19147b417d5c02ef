use std::ops::Range;

use super::{DocumentRows, TokenSource, TrainingWindows};
use crate::Error;
use crate::config::{BatchConfig, WindowOrder};

/// The batches of a training split.
#[derive(Clone, Debug)]
pub enum TrainingBatches {
    /// Windows over the text as it comes.
    Windows(TrainingWindows),
    /// Documents of about one length.
    Documents(DocumentRows),
}

impl TrainingBatches {
    /// Cuts a split as `batch` says.
    pub fn new(text: &dyn TokenSource, batch: &BatchConfig, seed: u64) -> Result<Self, Error> {
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

    /// How many targets the batch of step `step` has.
    pub fn targets(&self, step: u64) -> u64 {
        match self {
            Self::Windows(windows) => windows.targets(),
            Self::Documents(rows) => rows.targets(step),
        }
    }

    /// Fills `inputs` and `targets`, each rows × sequence long, with `rows` of the batch of step
    /// `step`. Places without a target hold [`IGNORED`](f2_engine::IGNORED).
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
