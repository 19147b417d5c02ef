//! Batches of documents: which piece of which document is in which row of which step.

use std::ops::Range;

use f2_engine::IGNORED;

use super::permutation::{Permutation, mix};
use super::{Pair, TokenSource};
use crate::Error;
use crate::config::BatchConfig;

/// Rows of one batch differ in length by less than this, except where two buckets meet. Batches are
/// padded to a multiple of it, so that a device meets few different shapes.
const BUCKET: u32 = 32;
/// The epochs whose targets are counted one by one to convert a limit in tokens to steps; later
/// ones are taken to be like the first, so that any limit is converted quickly.
const MOST_EPOCHS: u64 = 10_000;

/// Batches of whole documents of similar length, as the paper trains on lyrics.
///
/// A document of at most `sequence + 1` tokens is one row; longer ones are cut as windows are, the
/// last token of a piece being the first of the next. Pieces are sorted by length into buckets; an
/// epoch shuffles every bucket, cuts the whole into batches and takes those in a shuffled order.
///
/// A pair of source and target is one row, its source given and its target predicted.
#[derive(Clone, Debug)]
pub struct DocumentRows {
    sequence: usize,
    size: u64,
    seed: u64,
    /// Ascending by length, then position in the text.
    pieces: Vec<Piece>,
    /// Where each bucket begins in `pieces`, and the end.
    starts: Vec<u64>,
    /// Targets of all pieces together.
    targets: u64,
}

/// A part of a document, with at least one token to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// Its tokens, one more than it has targets.
    tokens: u32,
    first: u64,
    /// Positions at its beginning without a target: those of a source, except its separator.
    given: u32,
}

impl Piece {
    /// Positions of its row.
    fn places(self) -> u64 {
        u64::from(self.tokens) - 1
    }

    fn targets(self) -> u64 {
        self.places() - u64::from(self.given)
    }

    fn bucket(self) -> u32 {
        (self.tokens - 1).div_ceil(BUCKET)
    }
}

impl DocumentRows {
    /// Cuts a split into pieces; documents shorter than `batch.shortest` tokens are left out, pairs
    /// never.
    pub fn new(tokens: &dyn TokenSource, batch: &BatchConfig, seed: u64) -> Result<Self, Error> {
        let shortest = if tokens.separator().is_some() { 0 } else { batch.shortest };
        let mut pieces = match tokens.separator() {
            Some(separator) => pairs(tokens, separator, batch.sequence as u64)?,
            None => pieces(tokens, shortest as u64, batch.sequence as u64),
        };
        if pieces.len() < batch.size {
            let found = pieces.len();
            return Err(Error::TooFewDocuments { found, needed: batch.size, shortest });
        }
        pieces.sort_unstable();
        let mut starts: Vec<u64> = (1..pieces.len())
            .filter(|&index| pieces[index - 1].bucket() != pieces[index].bucket())
            .map(|index| index as u64)
            .collect();
        starts.insert(0, 0);
        starts.push(pieces.len() as u64);
        let (sequence, size) = (batch.sequence, batch.size as u64);
        let targets = pieces.iter().map(|piece| piece.targets()).sum();
        Ok(Self { sequence, size, seed, pieces, starts, targets })
    }

    /// How many rows an epoch has: those of whole batches.
    pub fn count(&self) -> u64 {
        self.batches() * self.size
    }

    fn batches(&self) -> u64 {
        self.pieces.len() as u64 / self.size
    }

    /// Rows of a batch.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The mean number of targets and the mean length of a batch of the first epoch.
    pub(super) fn means(&self) -> [f64; 2] {
        let steps = self.batches() as f64;
        let lengths: usize = (0..self.batches()).map(|step| self.length(step)).sum();
        [self.epoch_targets(0) as f64 / steps, lengths as f64 / steps]
    }

    /// The piece in row `row` of the batch of step `step`.
    fn piece(&self, step: u64, row: u64) -> Piece {
        let (epoch, place) = (step / self.batches(), step % self.batches());
        let key = self.key(epoch);
        let batch = Permutation::new(self.batches(), key).at(place);
        self.at(key, batch * self.size + row)
    }

    fn key(&self, epoch: u64) -> u64 {
        mix(self.seed ^ mix(epoch))
    }

    /// The piece at `place` of the epoch with this key: every bucket is shuffled on its own.
    fn at(&self, key: u64, place: u64) -> Piece {
        let bucket = self.starts.partition_point(|&start| start <= place);
        let (start, end) = (self.starts[bucket - 1], self.starts[bucket]);
        let inside = Permutation::new(end - start, mix(key ^ end)).at(place - start);
        self.pieces[(start + inside) as usize]
    }

    /// How many targets the batch of step `step` has; padding does not count.
    pub fn targets(&self, step: u64) -> u64 {
        (0..self.size).map(|row| self.piece(step, row).targets()).sum()
    }

    /// The length all rows of the batch of step `step` are padded to: that of the longest, rounded
    /// up.
    pub fn length(&self, step: u64) -> usize {
        let longest = (0..self.size).map(|row| self.piece(step, row).places()).max();
        let longest = longest.expect("a batch has a row") as usize;
        longest.next_multiple_of(BUCKET as usize).min(self.sequence)
    }

    /// The number of steps from the first whose batches together have at least `tokens` targets.
    pub fn steps_for(&self, tokens: u64) -> u64 {
        let (mut left, mut epochs) = (tokens, 0);
        while epochs < MOST_EPOCHS && left > self.epoch_targets(epochs) {
            left -= self.epoch_targets(epochs);
            epochs += 1;
        }
        if epochs == MOST_EPOCHS {
            return (epochs * self.batches()).saturating_add(
                left.div_ceil(self.epoch_targets(0)).saturating_mul(self.batches()),
            );
        }
        let mut step = epochs * self.batches();
        while left > 0 {
            left = left.saturating_sub(self.targets(step));
            step += 1;
        }
        step
    }

    /// How many targets epoch number `epoch` has: those of all pieces but the few at the end that
    /// do not fill a batch.
    fn epoch_targets(&self, epoch: u64) -> u64 {
        let left_out = self.count()..self.pieces.len() as u64;
        let key = self.key(epoch);
        self.targets - left_out.map(|place| self.at(key, place).targets()).sum::<u64>()
    }

    /// Fills `inputs` and `targets`, each rows × [`length`](Self::length) long, with `rows` of the
    /// batch of step `step`. Positions of a source have no target; padding has none either, and no
    /// other position attends to it.
    pub fn fill(
        &self,
        tokens: &dyn TokenSource,
        step: u64,
        rows: Range<u64>,
        inputs: &mut [u32],
        targets: &mut [u32],
    ) {
        let length = self.length(step);
        let rows = rows.zip(inputs.chunks_exact_mut(length).zip(targets.chunks_exact_mut(length)));
        for (row, (inputs, targets)) in rows {
            let piece = self.piece(step, row);
            let length = piece.places() as usize;
            let next = piece.first + 1;
            tokens.read(piece.first..piece.first + length as u64, &mut inputs[..length]);
            tokens.read(next..next + length as u64, &mut targets[..length]);
            inputs[length..].fill(0);
            targets[length..].fill(IGNORED);
            targets[..piece.given as usize].fill(IGNORED);
        }
    }
}

/// The pieces of all documents with at least `shortest` tokens.
fn pieces(tokens: &dyn TokenSource, shortest: u64, sequence: u64) -> Vec<Piece> {
    let long = |document: &Range<u64>| document.end - document.start >= shortest;
    let documents = tokens.documents().into_iter().filter(long);
    documents.flat_map(|document| cut(&document, sequence)).collect()
}

/// A piece for every pair: as much of it as a row holds.
fn pairs(tokens: &dyn TokenSource, separator: u32, sequence: u64) -> Result<Vec<Piece>, Error> {
    let piece = |pair: &Pair| {
        let Range { start, end } = pair.window(sequence + 1);
        let given = (pair.separator - start) as u32;
        Piece { tokens: (end - start) as u32, first: start, given }
    };
    Ok(Pair::all(tokens, separator)?.iter().map(piece).collect())
}

fn cut(document: &Range<u64>, sequence: u64) -> impl Iterator<Item = Piece> + use<> {
    let end = document.end;
    let firsts = (document.start..end.saturating_sub(1)).step_by(sequence as usize);
    firsts.map(move |first| Piece {
        tokens: (end - first).min(sequence + 1) as u32,
        first,
        given: 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::documents_for_tests::Documents;

    fn batch(sequence: usize, size: usize, shortest: usize) -> BatchConfig {
        BatchConfig { sequence, size, shortest, ..BatchConfig::default() }
    }

    /// The targets of an epoch, and the largest difference in length within a batch.
    fn epoch(rows: &DocumentRows, songs: &Documents, epoch: u64) -> (Vec<u32>, usize) {
        let (mut seen, mut widest) = (Vec::new(), 0);
        for step in epoch * rows.batches()..(epoch + 1) * rows.batches() {
            let length = rows.length(step);
            let [mut inputs, mut ids] = [(); 2].map(|()| vec![0; rows.size as usize * length]);
            rows.fill(songs, step, 0..rows.size, &mut inputs, &mut ids);
            let known = |row: &[u32]| row.iter().filter(|&&id| id != IGNORED).count();
            let lengths: Vec<usize> = ids.chunks(length).map(known).collect();
            assert_eq!(lengths.iter().sum::<usize>() as u64, rows.targets(step));
            let longest = *lengths.iter().max().unwrap();
            assert!(longest <= length && length - longest < BUCKET as usize);
            widest = widest.max(lengths.iter().max().unwrap() - lengths.iter().min().unwrap());
            for (input, id) in inputs.iter().zip(&ids).filter(|(_, id)| **id != IGNORED) {
                assert_eq!(input + 1, *id);
                seen.push(*id);
            }
        }
        (seen, widest)
    }

    proptest! {
        #[test]
        fn an_epoch_predicts_no_token_twice_and_leaves_out_less_than_a_batch(
            lengths in prop::collection::vec(0_u64..90, 20..60),
            sequence in 8_usize..70,
            seed: u64,
        ) {
            let songs = Documents(lengths);
            let Ok(rows) = DocumentRows::new(&songs, &batch(sequence, 4, 10), seed) else {
                return Ok(());
            };
            let (mut seen, _) = epoch(&rows, &songs, 1);
            let predicted = seen.len();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), predicted);
            let long = songs.documents().into_iter().filter(|song| song.end - song.start >= 10);
            let all: u64 = long.map(|song| song.end - song.start - 1).sum();
            prop_assert!(predicted as u64 <= all && all - predicted as u64 <= 3 * sequence as u64);
            prop_assert_eq!(rows.epoch_targets(1), predicted as u64);
        }

        /// The step found reaches the number of targets, and the one before it does not.
        #[test]
        fn steps_are_counted_in_targets(
            lengths in prop::collection::vec(10_u64..90, 20..60),
            tokens in 1_u64..20_000,
            seed: u64,
        ) {
            let rows = DocumentRows::new(&Documents(lengths), &batch(64, 4, 10), seed).unwrap();
            let steps = rows.steps_for(tokens);
            let targets = |steps: u64| (0..steps).map(|step| rows.targets(step)).sum::<u64>();
            prop_assert!(targets(steps - 1) < tokens && tokens <= targets(steps));
            prop_assert!(rows.steps_for(u64::MAX) > u64::MAX / 10_000);
        }
    }

    #[test]
    fn a_batch_holds_pieces_of_one_length() {
        let songs = Documents((0..400).map(|song| 50 + song * 7919 % 400).collect());
        let rows = DocumentRows::new(&songs, &batch(512, 8, 50), 3).unwrap();
        let (first, widest) = epoch(&rows, &songs, 0);
        assert!(widest < 2 * BUCKET as usize, "lengths in a batch differ by {widest}");
        assert_ne!(first, epoch(&rows, &songs, 1).0);
        assert_eq!(first, epoch(&rows, &songs, 0).0);
    }

    /// Reviews of about a hundred tokens, in windows of 512.
    #[test]
    fn a_batch_is_padded_to_its_longest_row() {
        let songs = Documents((0..64).map(|song| 90 + song % 20).collect());
        let rows = DocumentRows::new(&songs, &batch(512, 16, 50), 1).unwrap();
        let lengths: Vec<usize> = (0..rows.batches()).map(|step| rows.length(step)).collect();
        assert_eq!(lengths.iter().max(), Some(&128));
        // Never longer than a window, even if that is not a multiple of a bucket.
        let rows = DocumentRows::new(&songs, &batch(100, 16, 50), 1).unwrap();
        assert!((0..rows.batches()).all(|step| rows.length(step) <= 100));
    }

    #[test]
    fn short_documents_are_left_out() {
        let songs = Documents(vec![49, 50, 51, 10]);
        let rows = DocumentRows::new(&songs, &batch(512, 2, 50), 0).unwrap();
        assert_eq!((rows.count(), rows.targets(0)), (2, 49 + 50));
        let refused = DocumentRows::new(&songs, &batch(512, 3, 50), 0);
        insta::assert_snapshot!(refused.unwrap_err());
    }
}
