//! A batch's targets, grouped by class on the host, and the head's workspace.

use std::ops::Range;

use crate::cuda::memory::{Buffer, WIDEST};
use crate::cuda::runtime::{Stream, Upload};
use crate::{Error, Head, IGNORED, Labels};

/// Logits in memory at once, for any batch: enough rows for products near full speed.
const CHUNK: usize = 1 << 26;
/// The fewest rows of a chunk, unless the batch has fewer.
const FEWEST_ROWS: usize = 128;
/// Neighbouring classes with at most this many members in total share one product; the softmax of
/// each position is then over its own class's columns.
const TOGETHER: usize = 1024;

/// Lists of one word per entry or position, in the order in which they are stored.
#[derive(Clone, Copy)]
enum List {
    /// The positions that count, sorted by class, then position: the entries.
    Order,
    /// The column of every entry's target among its group's members, or [`IGNORED`].
    Columns,
    /// Every entry's weight.
    Weights,
    /// Where every entry's candidates begin and end.
    Starts,
    Ends,
    /// Where the columns of every entry's class begin and end among its group's members.
    ClassStarts,
    ClassEnds,
    /// Every position's class, or [`IGNORED`], and its weight.
    Classes,
    PositionWeights,
}

const LISTS: usize = 9;

/// Targets grouped by class, with the workspace of the head's loss.
#[derive(Debug)]
pub struct Targets<E> {
    words: Upload,
    candidates: Upload,
    capacity: usize,
    /// How many positions were loaded.
    pub(super) positions: usize,
    /// Where each class's entries begin, and where the last one's end.
    starts: Vec<u32>,
    groups: Vec<Group>,
    pub(super) penalties: Option<Penalty>,
    /// `[entries, width]`: hidden states by entry, and their gradients.
    pub(super) hidden: Buffer<E>,
    pub(super) d_hidden: Buffer<E>,
    pub(super) logits: Buffer<E>,
    /// `[positions, classes rounded up]`.
    pub(super) class_logits: Buffer<E>,
}

/// Neighbouring classes that share a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The ids of all their members.
    pub(super) members: Range<usize>,
    /// The entries whose targets they hold.
    pub(super) entries: Range<usize>,
}

/// Unlikelihood's settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    pub(super) weight: f32,
    pub(super) floor: f32,
    /// The most candidates of one position.
    pub(super) longest: usize,
}

/// Rows of logits begin at multiples of eight elements, as vector accesses and products need.
pub(super) fn stride(columns: usize) -> usize {
    columns.next_multiple_of(8)
}

/// How many elements each buffer of the workspace holds: logits, hidden states, their gradients and
/// the logits of classes.
fn lens(positions: usize, head: &Head) -> [usize; 4] {
    let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
    let rows = (CHUNK / stride(vocabulary)).max(FEWEST_ROWS).min(positions);
    let hidden = positions * width;
    [rows * stride(vocabulary), hidden, hidden, positions * stride(head.parts())]
}

impl<E: Copy> Targets<E> {
    pub(super) fn new(stream: &Stream, positions: usize, head: &Head) -> Result<Self, Error> {
        let width = head.tokens.columns;
        if width > WIDEST {
            let reason = format!("the softmax supports a width of at most {WIDEST}, not {width}");
            return Err(Error::Failed { device: "cuda", reason });
        }
        let [logits, hidden, d_hidden, class_logits] = lens(positions, head);
        Ok(Self {
            words: Upload::new(stream, LISTS * positions)?,
            candidates: Upload::new(stream, 1)?,
            capacity: positions,
            positions: 0,
            starts: vec![0; 2],
            groups: Vec::new(),
            penalties: None,
            hidden: Buffer::zeroed(stream, hidden)?,
            d_hidden: Buffer::zeroed(stream, d_hidden)?,
            logits: Buffer::zeroed(stream, logits)?,
            class_logits: Buffer::zeroed(stream, class_logits)?,
        })
    }

    /// The bytes that [`new`](Self::new) allocates on the device.
    pub(super) fn bytes(positions: usize, head: &Head) -> usize {
        let workspace: usize = lens(positions, head).iter().sum();
        LISTS * positions * size_of::<u32>() + workspace * size_of::<E>()
    }

    pub(super) fn load(&mut self, head: &Head, labels: &Labels<'_>) {
        let capacity = self.capacity;
        assert!(
            labels.ids.len() <= capacity,
            "{} targets exceed the capacity of {capacity}",
            labels.ids.len()
        );
        self.positions = labels.ids.len();
        self.penalties = labels.penalties.map(|penalties| Penalty {
            weight: penalties.weight,
            floor: penalties.floor,
            longest: penalties.ranges.iter().map(ExactSizeIterator::len).max().unwrap_or(0),
        });
        if let Some(penalties) = &labels.penalties {
            self.candidates.write_all(penalties.candidates);
        }
        let starts = &mut self.starts;
        self.words.write(LISTS * capacity, |words| {
            let mut lists = words.chunks_exact_mut(capacity.max(1));
            let lists = std::array::from_fn(|_| lists.next().unwrap_or_default());
            sort(head.class_ends(), labels, starts, lists);
        });
        self.groups = match &head.classes {
            Some(classes) => groups(&classes.ends, &self.starts),
            None => groups(&[head.tokens.rows as u32], &self.starts),
        };
    }

    /// Changes the weights of positions; the other lists stay as they are.
    pub(super) fn reweigh(&mut self, weights: &[f32]) {
        let (capacity, entries) = (self.capacity, self.entries());
        self.words.write(LISTS * capacity, |words| {
            let place = |list: List| list as usize * capacity;
            for (position, weight) in weights.iter().enumerate() {
                let counts = words[place(List::Classes) + position] != IGNORED;
                let weight = if counts { weight.to_bits() } else { 0 };
                words[place(List::PositionWeights) + position] = weight;
            }
            for entry in 0..entries {
                let position = words[place(List::Order) + entry] as usize;
                words[place(List::Weights) + entry] =
                    words[place(List::PositionWeights) + position];
            }
        });
    }

    fn list(&self, list: List) -> u64 {
        self.words.at(list as usize * self.capacity)
    }

    /// The classes, in groups; the plain softmax is one class.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The number of entries.
    pub(super) fn entries(&self) -> usize {
        *self.starts.last().expect("never empty") as usize
    }

    /// Cuts entries into equal chunks of rows whose `columns` logits fit the workspace.
    pub(super) fn chunks(
        &self,
        entries: Range<usize>,
        columns: usize,
        bytes: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<E> {
        let Range { start, end } = entries;
        let most = (self.logits.len() * size_of::<E>() / bytes / stride(columns)).max(1);
        let count = (end - start).div_ceil(most).max(1);
        let rows = (end - start).div_ceil(count).max(1);
        (start..end).step_by(rows).map(move |from| from..end.min(from + rows))
    }

    pub(super) fn order(&self) -> u64 {
        self.list(List::Order)
    }

    /// The addresses of the lists of entries that softmax kernels read: order, columns, weights,
    /// and where the columns of their classes begin and end.
    pub(super) fn lists(&self) -> [u64; 5] {
        use List::{ClassEnds, ClassStarts, Columns, Order, Weights};
        [Order, Columns, Weights, ClassStarts, ClassEnds].map(|list| self.list(list))
    }

    /// The same lists for the softmax over classes, whose entries are the positions.
    pub(super) fn class_lists(&self) -> [u64; 5] {
        [0, self.list(List::Classes), self.list(List::PositionWeights), 0, 0]
    }

    /// The addresses of the candidates, and of where each entry's begin and end.
    pub(super) fn candidates(&self) -> [u64; 3] {
        [self.candidates.at(0), self.list(List::Starts), self.list(List::Ends)]
    }
}

/// The first id of every class's group.
fn group_starts(ends: &[u32]) -> Vec<u32> {
    let (mut starts, mut group, mut first) = (Vec::with_capacity(ends.len()), 0, 0);
    for &end in ends {
        if (end - group) as usize > TOGETHER {
            group = first;
        }
        starts.push(group);
        first = end;
    }
    starts
}

fn groups(ends: &[u32], starts: &[u32]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (class, (first, &end)) in group_starts(ends).into_iter().zip(ends).enumerate() {
        let entries = starts[class] as usize..starts[class + 1] as usize;
        let end = end as usize;
        match groups.last_mut() {
            Some(group) if group.members.start == first as usize => {
                (group.members.end, group.entries.end) = (end, entries.end);
            }
            _ => groups.push(Group { members: first as usize..end, entries }),
        }
    }
    groups
}

/// A counting sort by class; fills all lists.
fn sort(ends: &[u32], labels: &Labels<'_>, starts: &mut Vec<u32>, lists: [&mut [u32]; LISTS]) {
    let [order, columns, weights, from, to, class_starts, class_ends, classes, position_weights] =
        lists;
    let groups = group_starts(ends);
    let none = 0..0;
    let range = |position: usize| {
        labels.penalties.as_ref().map_or(&none, |penalties| &penalties.ranges[position])
    };
    starts.clear();
    starts.resize(ends.len().max(1) + 1, 0);
    for (position, &id) in labels.ids.iter().enumerate() {
        let weight = if id == IGNORED { 0.0 } else { labels.weights.of(position) };
        position_weights[position] = weight.to_bits();
        classes[position] = if id == IGNORED { IGNORED } else { class_of(ends, id) };
        match classes[position] {
            IGNORED if range(position).is_empty() => {}
            IGNORED => starts[1] += 1,
            class => starts[class as usize + 1] += 1,
        }
    }
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    let mut next = starts.clone();
    for (position, &id) in labels.ids.iter().enumerate() {
        if id == IGNORED && range(position).is_empty() {
            continue;
        }
        let class = if id == IGNORED { 0 } else { classes[position] as usize };
        let entry = next[class] as usize;
        next[class] += 1;
        let first = class.checked_sub(1).map_or(0, |before| ends[before]);
        let group = groups.get(class).copied().unwrap_or(0);
        order[entry] = position as u32;
        columns[entry] = if id == IGNORED { IGNORED } else { id - group };
        weights[entry] = position_weights[position];
        [from[entry], to[entry]] = [range(position).start, range(position).end];
        class_starts[entry] = first - group;
        class_ends[entry] = ends.get(class).map_or(u32::MAX, |end| end - group);
    }
}

fn class_of(ends: &[u32], id: u32) -> u32 {
    ends.partition_point(|&end| end <= id).min(ends.len().saturating_sub(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Penalties, Weighting};

    fn grouped(ends: &[u32], labels: &Labels<'_>) -> (Vec<u32>, [Vec<u32>; LISTS]) {
        let mut lists = [(); LISTS].map(|()| vec![0; labels.ids.len()]);
        let mut starts = Vec::new();
        sort(ends, labels, &mut starts, lists.each_mut().map(Vec::as_mut_slice));
        (starts, lists)
    }

    #[test]
    fn entries_are_sorted_by_class_then_position() {
        let (starts, lists) =
            grouped(&[2, 4, 10], &Labels::uniform(&[9, 0, 3, IGNORED, 2, 0], 0.5));
        assert_eq!(starts, [0, 2, 4, 5]);
        assert_eq!(lists[List::Order as usize][..5], [1, 5, 2, 4, 0]);
        // All three classes are one group.
        assert_eq!(lists[List::Columns as usize][..5], [0, 0, 3, 2, 9]);
        assert_eq!(lists[List::ClassStarts as usize][..5], [0, 0, 2, 2, 4]);
        assert_eq!(lists[List::ClassEnds as usize][..5], [2, 2, 4, 4, 10]);
        assert_eq!(lists[List::Classes as usize], [2, 0, 1, IGNORED, 1, 0]);
        assert_eq!(lists[List::PositionWeights as usize][3], 0);
    }

    #[test]
    fn small_neighbours_become_one_group() {
        let ends = [3, 20, 1000, 1100, 1200, 9000, 9001];
        assert_eq!(group_starts(&ends), [0, 0, 0, 1000, 1000, 1200, 9000]);
        let group = |members, entries| Group { members, entries };
        assert_eq!(
            groups(&ends, &[0, 5, 5, 7, 8, 9, 20, 21]),
            [
                group(0..1000, 0..7),
                group(1000..1200, 7..9),
                group(1200..9000, 9..20),
                group(9000..9001, 20..21)
            ]
        );
        assert_eq!(groups(&[9000], &[0, 4]), [group(0..9000, 0..4)]);
    }

    #[test]
    fn an_ignored_target_with_candidates_still_counts() {
        let penalties =
            Penalties { candidates: &[4], ranges: &[0..0, 0..1], weight: 1.0, floor: 1e-5 };
        let weights = Weighting::Uniform(1.0);
        let labels = Labels { ids: &[IGNORED, IGNORED], weights, penalties: Some(penalties) };
        let (starts, lists) = grouped(&[], &labels);
        assert_eq!(starts, [0, 1]);
        assert_eq!(lists[List::Order as usize][0], 1);
        assert_eq!(lists[List::Columns as usize][0], IGNORED);
        assert_eq!(lists[List::Ends as usize][0], 1);
    }
}
