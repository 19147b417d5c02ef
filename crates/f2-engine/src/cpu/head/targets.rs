//! A batch's targets, grouped for the head, and the head's workspace.

use std::ops::Range;

use crate::cpu::memory::Buffer;
use crate::{Error, Head, IGNORED, Labels, Penalties};

/// Positions a chunk has at least, so that matrix products stay matrix products.
const FEWEST_ROWS: usize = 32;
/// Logits that a last-level cache may hold: 16 MiB.
const CACHED: usize = 1 << 22;
/// The most logits held at once: 128 MiB, whatever the batch.
const CHUNK: usize = 1 << 25;

/// Positions of a chunk of logits over `members` tokens. The output matrix is read three times for
/// each chunk: small chunks mean too many passes over it. A small vocabulary's logits stay in the
/// cache with 512 rows; those that do not may as well be twice as many.
fn chunk_rows(members: usize) -> usize {
    let most = if 512 * members <= CACHED { 512 } else { 1024 };
    (CHUNK / members).clamp(FEWEST_ROWS, most)
}

/// Targets grouped by class, with the workspace of the head's loss.
#[derive(Debug)]
pub struct Targets {
    pub(super) ids: Vec<u32>,
    pub(super) weights: Vec<f32>,
    /// Positions that count, sorted by class, then position.
    pub(super) order: Vec<u32>,
    /// Where each class's positions begin in `order`, and the end.
    pub(super) starts: Vec<u32>,
    pub(super) penalties: OwnedPenalties,
    pub(super) workspace: Workspace,
    logits: Logits,
}

/// The state of the workspace's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logits {
    /// Not reusable.
    Spent,
    /// Those predictions were made from: of the last chunk.
    Predicted,
    /// The same, and the caller has said that nothing else has changed since.
    Reusable,
}

/// [`Penalties`] that own their lists.
#[derive(Debug, Default)]
pub(super) struct OwnedPenalties {
    candidates: Vec<u32>,
    ranges: Vec<Range<u32>>,
    pub(super) weight: f32,
    pub(super) floor: f32,
}

impl OwnedPenalties {
    fn load(&mut self, penalties: Option<&Penalties<'_>>) {
        self.candidates.clear();
        self.ranges.clear();
        if let Some(penalties) = penalties {
            self.candidates.extend_from_slice(penalties.candidates);
            self.ranges.extend_from_slice(penalties.ranges);
            (self.weight, self.floor) = (penalties.weight, penalties.floor);
        }
    }

    /// The candidates of a position.
    pub(super) fn of(&self, position: usize) -> &[u32] {
        self.ranges
            .get(position)
            .map_or(&[], |range| &self.candidates[range.start as usize..range.end as usize])
    }
}

/// Buffers for one chunk of positions (all of them, for the small ones).
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) logits: Buffer,
    /// `[chunk, width]`: hidden states gathered by class, and their gradients.
    pub(super) hidden: Buffer,
    pub(super) d_hidden: Buffer,
    /// `[chunk, 2]`.
    pub(super) losses: Buffer,
    /// `[positions, classes]`.
    pub(super) class_logits: Buffer,
}

impl Workspace {
    /// How many floats each buffer holds, in their order.
    fn lens(positions: usize, head: &Head) -> [usize; 5] {
        let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
        let rows = chunk_rows(vocabulary).min(positions);
        let hidden = positions * width;
        [rows * vocabulary, hidden, hidden, positions * 2, positions * head.parts()]
    }
}

impl Targets {
    pub(super) fn new(positions: usize, head: &Head) -> Result<Self, Error> {
        let [logits, hidden, d_hidden, losses, class_logits] = Workspace::lens(positions, head);
        Ok(Self {
            ids: Vec::with_capacity(positions),
            weights: Vec::with_capacity(positions),
            order: Vec::with_capacity(positions),
            starts: Vec::with_capacity(head.parts() + 1),
            penalties: OwnedPenalties::default(),
            logits: Logits::Spent,
            workspace: Workspace {
                logits: Buffer::zeroed(logits)?,
                hidden: Buffer::zeroed(hidden)?,
                d_hidden: Buffer::zeroed(d_hidden)?,
                losses: Buffer::zeroed(losses)?,
                class_logits: Buffer::zeroed(class_logits)?,
            },
        })
    }

    /// The bytes of [`new`](Self::new).
    pub(super) fn bytes(positions: usize, head: &Head) -> usize {
        // Ids, weights and the order of the positions.
        let lists = 3 * positions + head.parts() + 1;
        let workspace = Workspace::lens(positions, head);
        (lists + workspace.iter().sum::<usize>()) * size_of::<f32>()
    }

    pub(super) fn load(&mut self, class_ends: &[u32], labels: &Labels<'_>) {
        self.ids.clear();
        self.ids.extend_from_slice(labels.ids);
        self.weights.clear();
        self.weights.extend((0..labels.ids.len()).map(|position| labels.weights.of(position)));
        self.penalties.load(labels.penalties.as_ref());
        self.logits = Logits::Spent;
        self.group(class_ends);
    }

    pub(super) fn reweigh(&mut self, weights: &[f32]) {
        self.weights.copy_from_slice(weights);
        if self.logits == Logits::Predicted {
            self.logits = Logits::Reusable;
        }
    }

    /// Marks the logits of the last chunk as those that predictions were made from.
    pub(super) fn predicted(&mut self) {
        self.logits = Logits::Predicted;
    }

    /// Whether the workspace holds the last chunk's logits, which the caller will overwrite.
    pub(super) fn take_logits(&mut self) -> bool {
        std::mem::replace(&mut self.logits, Logits::Spent) == Logits::Reusable
    }

    /// A counting sort by class.
    fn group(&mut self, ends: &[u32]) {
        let class_of =
            |id: u32| ends.partition_point(|&end| end <= id).min(ends.len().saturating_sub(1));
        let class = |position: usize| match self.ids[position] {
            IGNORED if self.penalties.of(position).is_empty() => None,
            IGNORED => Some(0),
            id => Some(class_of(id)),
        };
        self.starts.clear();
        self.starts.resize(ends.len().max(1) + 1, 0);
        for class in (0..self.ids.len()).filter_map(class) {
            self.starts[class + 1] += 1;
        }
        for index in 1..self.starts.len() {
            self.starts[index] += self.starts[index - 1];
        }
        let mut next = self.starts.clone();
        self.order.clear();
        self.order.resize(*next.last().expect("never empty") as usize, 0);
        for position in 0..self.ids.len() {
            if let Some(class) = class(position) {
                self.order[next[class] as usize] = position as u32;
                next[class] += 1;
            }
        }
    }

    /// How many classes the targets were grouped by.
    pub(super) fn classes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where class `class`'s positions lie in the order.
    pub(super) fn class(&self, class: usize) -> Range<usize> {
        self.starts[class] as usize..self.starts[class + 1] as usize
    }

    /// Cuts the positions of a class into chunks whose logits over `members` tokens fit the
    /// workspace.
    pub(super) fn chunks(
        &self,
        class: usize,
        members: usize,
    ) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + use<> {
        let Range { start, end } = self.class(class);
        let most = chunk_rows(members).min(self.workspace.logits.len() / members);
        // Equal chunks: a last one of a few rows would waste a pass over the matrix.
        let count = (end - start).div_ceil(most.max(1)).max(1);
        let rows = (end - start).div_ceil(count).max(1);
        (start..end).step_by(rows).map(move |from| from..end.min(from + rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classes, Layout, Weighting};

    /// Ten tokens, in classes where there are any.
    fn head(ends: &[u32]) -> Head {
        let mut layout = Layout::new();
        let tokens = layout.add("tokens", &[10, 3], true);
        let vectors = layout.add("classes", &[ends.len().max(1), 3], true);
        let classes = (!ends.is_empty()).then(|| Classes { vectors, ends: ends.to_vec() });
        Head { tokens, classes }
    }

    fn grouped(ids: &[u32], ends: &[u32]) -> Targets {
        let mut targets = Targets::new(ids.len(), &head(ends)).unwrap();
        targets.load(ends, &Labels::uniform(ids, 1.0));
        targets
    }

    #[test]
    fn positions_are_sorted_by_class_then_place() {
        let targets = grouped(&[9, 0, 3, IGNORED, 2, 0], &[2, 4, 10]);
        assert_eq!(targets.order, [1, 5, 2, 4, 0]);
        assert_eq!(targets.starts, [0, 2, 4, 5]);
    }

    #[test]
    fn one_class_keeps_the_order() {
        assert_eq!(grouped(&[9, 0, 3], &[]).order, [0, 1, 2]);
        assert_eq!(grouped(&[9, 0, 3], &[10]).order, [0, 1, 2]);
    }

    #[test]
    fn an_ignored_target_with_candidates_still_counts() {
        let mut targets = Targets::new(2, &head(&[])).unwrap();
        let penalties =
            Penalties { candidates: &[4], ranges: &[0..0, 0..1], weight: 1.0, floor: 1e-5 };
        let weights = Weighting::Uniform(1.0);
        let labels = Labels { ids: &[IGNORED, IGNORED], weights, penalties: Some(penalties) };
        targets.load(&[], &labels);
        assert_eq!(targets.order, [1]);
        assert_eq!(targets.penalties.of(1), [4]);
    }

    #[test]
    fn chunks_cover_a_class() {
        let targets = grouped(&[1; 100], &[10]);
        let chunks: Vec<_> = targets.chunks(0, 10).collect();
        assert_eq!(chunks.iter().map(Range::len).sum::<usize>(), 100);
        assert_eq!(chunks[0].start, 0);
    }
}
