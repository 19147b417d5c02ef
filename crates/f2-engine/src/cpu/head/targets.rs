//! A batch's targets, grouped for the head, and the head's workspace.

use std::ops::Range;

use crate::cpu::memory::Buffer;
use crate::{Error, Head, IGNORED, Labels, Penalties};

/// The minimum number of positions in a chunk, so that products do not become memory-bound.
const FEWEST_ROWS: usize = 32;
/// Logits assumed to fit the last-level cache: 16 MiB.
const CACHED: usize = 1 << 22;
/// The maximum number of logits held at once, unless [`FEWEST_ROWS`] need more: 128 MiB.
const CHUNK: usize = 1 << 25;

/// The maximum number of positions in a chunk of logits over `members` tokens. The output matrix is
/// read three times for each chunk, so chunks should not be small. If 512 rows of logits fit the
/// cache, chunks have at most 512; if not, more rows cost nothing, and they have up to 1024.
fn chunk_rows(members: usize) -> usize {
    let most = if 512 * members <= CACHED { 512 } else { 1024 };
    (CHUNK / members).clamp(FEWEST_ROWS, most)
}

/// Targets grouped by class, with the workspace for the head's loss.
#[derive(Debug)]
pub struct Targets {
    pub(super) ids: Vec<u32>,
    pub(super) weights: Vec<f32>,
    /// The positions that are not ignored or have candidates, sorted by class, then position.
    pub(super) order: Vec<u32>,
    /// Where each class's positions begin in `order`, and `order`'s length.
    pub(super) starts: Vec<u32>,
    pub(super) penalties: OwnedPenalties,
    pub(super) workspace: Workspace,
    logits: Logits,
}

/// The state of the workspace's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logits {
    /// The logits cannot be reused.
    Spent,
    /// The logits of the last chunk, from which predictions were made.
    Predicted,
    /// As [`Self::Predicted`], and the targets were reweighed: the caller guarantees that nothing
    /// else has changed.
    Reusable,
}

/// [`Penalties`] with owned lists.
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

/// Buffers for one chunk of positions; all but the logits have room for all positions.
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
    /// The lengths of the buffers, in order.
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

    /// The bytes allocated by [`new`](Self::new).
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

    /// Marks the workspace as holding the last chunk's logits, from which predictions were made.
    pub(super) fn predicted(&mut self) {
        self.logits = Logits::Predicted;
    }

    /// Whether the workspace holds the last chunk's logits for reuse. Resets the state, since the
    /// caller overwrites them.
    pub(super) fn take_logits(&mut self) -> bool {
        std::mem::replace(&mut self.logits, Logits::Spent) == Logits::Reusable
    }

    /// Sorts the positions by class with a counting sort.
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

    /// The number of classes the targets are grouped by.
    pub(super) fn classes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The range of a class's positions in `order`.
    pub(super) fn class(&self, class: usize) -> Range<usize> {
        self.starts[class] as usize..self.starts[class + 1] as usize
    }

    /// Divides the positions of a class into chunks whose logits over `members` tokens fit the
    /// workspace.
    pub(super) fn chunks(
        &self,
        class: usize,
        members: usize,
    ) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + use<> {
        let Range { start, end } = self.class(class);
        let most = chunk_rows(members).min(self.workspace.logits.len() / members);
        // Equal chunks: a short last one would waste a pass over the matrix.
        let count = (end - start).div_ceil(most.max(1)).max(1);
        let rows = (end - start).div_ceil(count).max(1);
        (start..end).step_by(rows).map(move |from| from..end.min(from + rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classes, Layout, Weighting};

    /// A head of ten tokens, with classes if there are ends.
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
