//! The copies that reorder the sequences of a cache in place.

/// One step of a reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Copies a sequence over another that is not read again.
    Copy {
        /// The source.
        from: usize,
        /// The destination.
        to: usize,
    },
    /// Saves a sequence to the temporary buffer.
    Save(usize),
    /// Copies the temporary buffer over a sequence.
    Restore(usize),
}

/// The steps after which sequence `i` is a copy of the former sequence `parents[i]`, in an order in
/// which no sequence is overwritten before it is read. A sequence that is its own parent is left
/// alone.
pub(super) fn moves(parents: &[u32], sequences: usize) -> Vec<Move> {
    let parent = |sequence: usize| parents[sequence] as usize;
    let mut waits: Vec<bool> =
        (0..sequences).map(|it| it < parents.len() && parent(it) != it).collect();
    let mut readers = vec![0; sequences];
    (0..sequences).filter(|it| waits[*it]).for_each(|it| readers[parent(it)] += 1);
    let mut unread: Vec<usize> =
        (0..sequences).filter(|it| waits[*it] && readers[*it] == 0).collect();
    let mut moves = Vec::new();
    while let Some(to) = unread.pop() {
        let from = parent(to);
        moves.push(Move::Copy { from, to });
        waits[to] = false;
        readers[from] -= 1;
        if readers[from] == 0 && waits[from] {
            unread.push(from);
        }
    }
    // Every remaining sequence has one reader: they form cycles.
    for first in 0..sequences {
        if waits[first] {
            rotate(first, parent, &mut waits, &mut moves);
        }
    }
    moves
}

/// Rotates one cycle by one place.
fn rotate(
    first: usize,
    parent: impl Fn(usize) -> usize,
    waits: &mut [bool],
    moves: &mut Vec<Move>,
) {
    moves.push(Move::Save(first));
    let mut to = first;
    waits[to] = false;
    while parent(to) != first {
        let from = parent(to);
        moves.push(Move::Copy { from, to });
        waits[from] = false;
        to = from;
    }
    moves.push(Move::Restore(to));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence at each place after the moves, and the overwritten places in order.
    fn follow(moves: &[Move], sequences: usize) -> (Vec<usize>, Vec<usize>) {
        let mut now: Vec<usize> = (0..sequences).collect();
        let (mut saved, mut overwritten) = (None, Vec::new());
        for step in moves {
            match *step {
                Move::Copy { from, to } => now[to] = now[from],
                Move::Save(from) => saved = Some(now[from]),
                Move::Restore(to) => now[to] = saved.take().unwrap(),
            }
            if let Move::Copy { to, .. } | Move::Restore(to) = *step {
                overwritten.push(to);
            }
        }
        (now, overwritten)
    }

    /// All mappings of five sequences onto themselves.
    #[test]
    fn every_sequence_becomes_its_parent_at_one_copy_each() {
        for number in 0..5_u32.pow(5) {
            let parents: Vec<u32> = (0..5).map(|place| number / 5_u32.pow(place) % 5).collect();
            let (now, mut overwritten) = follow(&moves(&parents, 5), 5);
            assert!(now.iter().zip(&parents).all(|(now, parent)| *now == *parent as usize));
            overwritten.sort_unstable();
            let moved = (0..5).filter(|&it| parents[it] as usize != it);
            assert_eq!(overwritten, moved.collect::<Vec<_>>(), "{parents:?}");
        }
    }

    #[test]
    fn sequences_that_stay_or_are_not_named_are_left_alone() {
        assert_eq!(moves(&[0, 1, 2], 5), []);
        assert_eq!(moves(&[4, 1], 5), [Move::Copy { from: 4, to: 0 }]);
        let swap = [Move::Save(0), Move::Copy { from: 1, to: 0 }, Move::Restore(1)];
        assert_eq!(moves(&[1, 0], 2), swap);
    }
}
