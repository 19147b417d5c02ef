//! The part of the flat buffers that each rank owns when several train one model.

use std::ops::Range;

use super::NORM_BLOCK;

/// The maximum number of buckets, so that messages stay long.
const MOST_BUCKETS: usize = 16;

/// A flat buffer divided into buckets, which are exchanged one after the other, and every bucket
/// into a piece for each rank. The slice of a rank is the concatenation of its pieces of all
/// buckets. Each bucket is therefore sent by all ranks to all and keeps all connections busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The pieces, by bucket and rank.
    buckets: Vec<Vec<Range<usize>>>,
}

impl Partition {
    /// A single bucket with these pieces.
    pub fn of_pieces(pieces: Vec<Range<usize>>) -> Self {
        Self { buckets: vec![pieces] }
    }

    /// Divides a buffer of `len` elements, which the backward pass completes from the end to the
    /// start: `finals` are descending offsets, and all elements from each of them on are final
    /// before those below it.
    ///
    /// Pieces begin at boundaries of [`NORM_BLOCK`]s, so that the sums of squares of these blocks
    /// do not depend on the number of ranks. The pieces of a bucket are equal in length, except in
    /// the bucket at the end of the buffer.
    pub fn new(len: usize, ranks: usize, finals: &[usize]) -> Self {
        let unit = ranks * NORM_BLOCK;
        let least = len.div_ceil(MOST_BUCKETS);
        let (mut buckets, mut end) = (Vec::new(), len);
        for place in finals {
            let start = place.next_multiple_of(unit);
            if start > 0 && start + least <= end {
                buckets.push(pieces(start..end, ranks));
                end = start;
            }
        }
        buckets.push(pieces(0..end, ranks));
        Self { buckets }
    }

    /// The number of buckets.
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The pieces of a bucket, by rank, contiguous and in order.
    pub fn pieces(&self, bucket: usize) -> &[Range<usize>] {
        &self.buckets[bucket]
    }

    /// The range of a whole bucket.
    pub fn bucket(&self, bucket: usize) -> Range<usize> {
        let pieces = &self.buckets[bucket];
        pieces[0].start..pieces[pieces.len() - 1].end
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.buckets[0].len()
    }

    /// The non-empty pieces of a rank, each with its offset in the rank's slice.
    pub fn slice(&self, rank: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let starts = self.buckets.iter().scan(0, move |at, pieces| {
            let start = *at;
            *at += pieces[rank].len();
            Some((start, pieces[rank].clone()))
        });
        starts.filter(|(_, piece)| !piece.is_empty())
    }

    /// The offset of a rank's piece of a bucket in the rank's slice.
    pub fn place(&self, bucket: usize, rank: usize) -> usize {
        self.buckets[..bucket].iter().map(|pieces| pieces[rank].len()).sum()
    }

    /// The length of a rank's slice.
    pub fn owned(&self, rank: usize) -> usize {
        self.place(self.buckets.len(), rank)
    }

    /// The partition with every bound mapped by `place`, such as to the offset of the sums of
    /// squares of each piece.
    #[must_use]
    pub fn map(&self, place: impl Fn(usize) -> usize) -> Self {
        let of = |piece: &Range<usize>| place(piece.start)..place(piece.end);
        Self { buckets: self.buckets.iter().map(|all| all.iter().map(of).collect()).collect() }
    }
}

/// Assigns every rank the same number of norm blocks. The last pieces may be shorter or empty.
fn pieces(bucket: Range<usize>, ranks: usize) -> Vec<Range<usize>> {
    let each = bucket.len().div_ceil(NORM_BLOCK).div_ceil(ranks) * NORM_BLOCK;
    let bound = |rank: usize| (bucket.start + rank * each).min(bucket.end);
    (0..ranks).map(|rank| bound(rank)..bound(rank + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partition, checked for covering the buffer with valid pieces.
    fn check(len: usize, ranks: usize, finals: &[usize]) -> Partition {
        let partition = Partition::new(len, ranks, finals);
        let mut all: Vec<_> = (0..ranks).flat_map(|rank| partition.slice(rank)).collect();
        all.sort_by_key(|(_, piece)| piece.start);
        let pieces: Vec<_> = all.into_iter().map(|(_, piece)| piece).collect();
        assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, len));
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start), "{pieces:?}");
        assert!(pieces.iter().all(|piece| piece.start.is_multiple_of(NORM_BLOCK)), "{pieces:?}");
        assert_eq!(partition.ranks(), ranks);
        for bucket in 1..partition.buckets() {
            let own = partition.pieces(bucket);
            assert!(own.iter().all(|piece| piece.len() == own[0].len() && !piece.is_empty()));
            assert_eq!(partition.bucket(bucket).end, partition.bucket(bucket - 1).start);
        }
        for rank in 0..ranks {
            let last = partition.slice(rank).last();
            let end = last.map_or(0, |(at, piece)| at + piece.len());
            assert_eq!(partition.owned(rank), end);
        }
        partition
    }

    #[test]
    fn pieces_meet_at_blocks_and_cover_everything() {
        for (len, ranks) in [(16, 1), (16, 3), (10 * NORM_BLOCK, 4), (7 * NORM_BLOCK + 16, 3)] {
            assert_eq!(check(len, ranks, &[]).buckets(), 1);
        }
        let len = 40 * NORM_BLOCK + 32;
        let finals = [39, 33, 20, 19, 3, 0].map(|block| block * NORM_BLOCK + 16);
        for ranks in 1..=5 {
            let partition = check(len, ranks, &finals);
            assert!(partition.buckets() > 2, "{ranks} ranks: {partition:?}");
            // Nothing is sent before it is final.
            for bucket in 0..partition.buckets() - 1 {
                assert!(partition.bucket(bucket).start >= finals[5], "{partition:?}");
            }
        }
    }

    #[test]
    fn short_buckets_are_joined() {
        let finals: Vec<usize> = (0..64).rev().map(|block| block * NORM_BLOCK).collect();
        let partition = check(64 * NORM_BLOCK, 1, &finals);
        assert_eq!(partition.buckets(), MOST_BUCKETS);
        let partition = check(8 * NORM_BLOCK, 16, &finals[56..]);
        assert_eq!(partition.buckets(), 1);
    }

    #[test]
    fn a_slice_is_the_pieces_of_all_buckets() {
        let partition = Partition::new(10 * NORM_BLOCK, 2, &[5 * NORM_BLOCK, 0]);
        let block = |from: usize, to: usize| from * NORM_BLOCK..to * NORM_BLOCK;
        assert_eq!(partition.pieces(0), [block(6, 8), block(8, 10)]);
        assert_eq!(partition.pieces(1), [block(0, 3), block(3, 6)]);
        let second: Vec<_> = partition.slice(1).collect();
        assert_eq!(second, [(0, block(8, 10)), (2 * NORM_BLOCK, block(3, 6))]);
        assert_eq!((partition.place(1, 1), partition.owned(1)), (2 * NORM_BLOCK, 5 * NORM_BLOCK));
        assert_eq!(partition.map(|place| place / NORM_BLOCK).pieces(1), [0..3, 3..6]);
    }
}
