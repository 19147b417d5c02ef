//! The batches of a training split: documents, or windows over its tokens in the order training
//! reads them.

use std::ops::Range;

use f2_corpus::Split;

use super::DocumentRows;
use super::permutation::{Permutation, mix};
use crate::Error;
use crate::config::{BatchConfig, WindowOrder};

/// The token ids of one split, which are frequency ranks, in memory or on disk.
pub trait TokenSource: Sync {
    /// How many tokens there are.
    fn len(&self) -> u64;

    /// Copies the tokens of `range` into `out`, which has the same length.
    fn read(&self, range: Range<u64>, out: &mut [u32]);

    /// The range of every document, in order.
    fn documents(&self) -> Vec<Range<u64>> {
        std::iter::once(0..self.len()).collect()
    }

    /// The token between source and target, if documents are pairs, of which only targets are
    /// predicted.
    fn separator(&self) -> Option<u32> {
        None
    }

    /// Whether it has no tokens.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TokenSource for Vec<u32> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        out.copy_from_slice(&self[range.start as usize..range.end as usize]);
    }
}

/// The windows of a training split and their order.
///
/// Window `w` reads `sequence + 1` tokens from `w · sequence` on: the first `sequence` are
/// inputs, the last `sequence` targets, so every token but the first is predicted once an epoch.
#[derive(Clone, Debug)]
pub struct TrainingWindows {
    sequence: u64,
    size: u64,
    windows: u64,
    /// Read side by side instead of in a shuffled order.
    streams: bool,
    seed: u64,
}

impl TrainingWindows {
    /// Cuts a split of `tokens` tokens into windows.
    pub fn new(tokens: u64, batch: &BatchConfig, seed: u64) -> Result<Self, Error> {
        let sequence = batch.sequence as u64;
        let windows = tokens.saturating_sub(1) / sequence;
        let streams = batch.order == WindowOrder::Streams;
        let needed = if streams { batch.size as u64 } else { 1 };
        if windows < needed {
            return Err(Error::SplitTooShort {
                split: Split::Train.name(),
                tokens,
                needed: needed * sequence + 1,
                sequence: batch.sequence,
            });
        }
        Ok(Self { sequence, size: batch.size as u64, windows, streams, seed })
    }

    /// How many windows an epoch has.
    pub fn count(&self) -> u64 {
        self.windows
    }

    /// How many targets a batch has.
    pub fn targets(&self) -> u64 {
        self.size * self.sequence
    }

    /// How many tokens a row has.
    pub fn length(&self) -> usize {
        self.sequence as usize
    }

    /// Rows of a batch.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The window in row `row` of the batch of step `step`.
    pub fn window(&self, step: u64, row: u64) -> u64 {
        if self.streams {
            let per_row = self.windows / self.size;
            return row * per_row + step % per_row;
        }
        let place = step * self.size + row;
        let epoch = place / self.windows;
        Permutation::new(self.windows, mix(self.seed ^ mix(epoch))).at(place % self.windows)
    }

    /// Fills `inputs` and `targets`, each rows × sequence long, with the windows of `rows` of the
    /// batch of step `step`.
    pub fn fill(
        &self,
        tokens: &dyn TokenSource,
        step: u64,
        rows: Range<u64>,
        inputs: &mut [u32],
        targets: &mut [u32],
    ) {
        let sequence = self.sequence as usize;
        let rows =
            rows.zip(inputs.chunks_exact_mut(sequence).zip(targets.chunks_exact_mut(sequence)));
        for (row, (inputs, targets)) in rows {
            let start = self.window(step, row) * self.sequence;
            tokens.read(start..start + self.sequence, inputs);
            tokens.read(start + 1..start + 1 + self.sequence, targets);
        }
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batch(sequence: usize, size: usize, order: WindowOrder) -> BatchConfig {
        BatchConfig { sequence, size, order, ..BatchConfig::default() }
    }

    proptest! {
        #[test]
        fn an_epoch_predicts_every_token_once(
            tokens in 20_u64..400, sequence in 2_usize..9, seed: u64,
        ) {
            let split: Vec<u32> = (0..tokens as u32).collect();
            let windows =
                TrainingWindows::new(tokens, &batch(sequence, 1, WindowOrder::Shuffled), seed)
                    .unwrap();
            let mut predicted = Vec::new();
            let (mut inputs, mut targets) = (vec![0; sequence], vec![0; sequence]);
            for step in 0..windows.count() {
                windows.fill(&split, step, 0..1, &mut inputs, &mut targets);
                prop_assert!(inputs.iter().zip(&targets).all(|(i, t)| i + 1 == *t));
                predicted.extend_from_slice(&targets);
            }
            predicted.sort_unstable();
            let all: Vec<u32> = (1..=(windows.count() * sequence as u64) as u32).collect();
            prop_assert_eq!(predicted, all);
        }
    }

    #[test]
    fn the_second_epoch_has_another_order() {
        let windows = TrainingWindows::new(1_001, &batch(10, 4, WindowOrder::Shuffled), 1).unwrap();
        assert_eq!(windows.count(), 100);
        let order = |epoch: u64| -> Vec<u64> {
            (0..100).map(|i| windows.window(epoch * 25 + i / 4, i % 4)).collect()
        };
        assert_ne!(order(0), order(1));
        assert_eq!(order(0), order(0));
    }

    #[test]
    fn streams_read_contiguous_rows_side_by_side() {
        // 25 windows, 4 rows of 6, one window dropped.
        let windows = TrainingWindows::new(101, &batch(4, 4, WindowOrder::Streams), 1).unwrap();
        let step = |step| (0..4).map(|row| windows.window(step, row)).collect::<Vec<_>>();
        assert_eq!(step(0), [0, 6, 12, 18]);
        assert_eq!(step(5), [5, 11, 17, 23]);
        assert_eq!(step(6), [0, 6, 12, 18]);
    }

    #[test]
    fn a_split_shorter_than_a_window_is_refused() {
        let refused = TrainingWindows::new(256, &batch(256, 8, WindowOrder::Shuffled), 0);
        insta::assert_snapshot!(refused.unwrap_err());
        assert!(TrainingWindows::new(257, &batch(256, 8, WindowOrder::Shuffled), 0).is_ok());
        assert!(TrainingWindows::new(0, &batch(256, 8, WindowOrder::Shuffled), 0).is_err());
    }
}
