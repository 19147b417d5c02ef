//! What ranks exchange when several train one model: gradients to the owners of their slices,
//! updated parameters back to all, and the sums that make them one.
//!
//! The flat buffers are cut into a slice for each rank. Sums are made here and not on the way: what
//! a network adds up on the way has no order of its own.

use std::ops::Range;

use super::{Memory, NORM_BLOCK};
use crate::Error;

/// The exchange between ranks, and the sums of what arrives.
pub trait Exchange: Memory {
    /// The connection of this rank to all others.
    type Peers: Send;

    /// Connects this rank to all others; every rank calls it.
    fn join(&self, meeting: &mut dyn Meeting) -> Result<Self::Peers, Error>;

    /// `to[at..] = from[range]`.
    fn copy_floats(
        &self,
        from: &Self::Floats,
        range: Range<usize>,
        to: &mut Self::Floats,
        at: usize,
    );
    /// `to[at..] += from[range]`.
    fn add_floats(
        &self,
        from: &Self::Floats,
        range: Range<usize>,
        to: &mut Self::Floats,
        at: usize,
    );
    /// `floats[at..] += floats[range]`; the two do not overlap.
    fn add_within(&self, floats: &mut Self::Floats, range: Range<usize>, at: usize);
    /// `to[0] = Σ from[..len]`, one after the other in double precision: zeros change nothing.
    fn add_in_order(&self, len: usize, from: &Self::Floats, to: &mut Self::Floats);

    /// Sends slice `j` of each of this rank's `parts` to rank `j`, and receives the own slice of all
    /// others'. `to` is `[all parts of all ranks, own slice]`, in the order of ranks; this rank's own
    /// are copied.
    fn scatter(
        &self,
        peers: &mut Self::Peers,
        scatter: &Scatter<'_>,
        parts: &[&Self::Floats],
        to: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// Every rank's slice of `floats` to all others: rank `j` has `floats[slices[j]]`.
    fn gather_floats(
        &self,
        peers: &mut Self::Peers,
        slices: &[Range<usize>],
        floats: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// Every rank's updated slice of the parameters to all others, in the precision that passes
    /// read them in.
    fn gather_weights(
        &self,
        peers: &mut Self::Peers,
        slices: &[Range<usize>],
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// Every rank's slice of the parameters to all others, in full precision, so that
    /// [`read_weights`](Memory::read_weights) gives all of them.
    fn gather_full_weights(
        &self,
        peers: &mut Self::Peers,
        slices: &[Range<usize>],
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// The bytes [`gather_weights`](Self::gather_weights) sends of `len` parameters, to one rank.
    fn weight_message_bytes(len: usize) -> usize {
        len * size_of::<f32>()
    }
}

/// How ranks that know each other as hosts bring their devices together.
pub trait Meeting {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// What rank 0 gives, at every rank.
    fn share(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, Error>;
    /// The connection that devices without one of their own use; none where there is none.
    fn host_peers(&mut self) -> Option<Box<dyn HostPeers>>;
}

/// The connection of this rank's host to those of all others.
pub trait HostPeers: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Sends and receives everything listed, each with the rank it goes to or comes from. Messages
    /// between two ranks arrive in their order; as many are sent as are received.
    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error>;
}

/// Who sends how much to whom.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// The slice of each rank.
    pub slices: &'a [Range<usize>],
    /// How many parts each rank sends.
    pub parts: &'a [usize],
}

impl Scatter<'_> {
    /// The rows that a rank's parts take in what is received.
    pub fn rows(&self, rank: usize) -> Range<usize> {
        let before: usize = self.parts[..rank].iter().sum();
        before..before + self.parts[rank]
    }

    /// All rows of what is received.
    pub fn all_rows(&self) -> usize {
        self.parts.iter().sum()
    }
}

/// Cuts a flat buffer of `len` elements into a slice for each rank, at the bounds of the norm's
/// blocks: equally many blocks to each, so that their sums of squares lie in order, whoever made
/// them. The last slices may be shorter or empty.
pub fn slices(len: usize, ranks: usize) -> Vec<Range<usize>> {
    let each = len.div_ceil(NORM_BLOCK).div_ceil(ranks) * NORM_BLOCK;
    (0..ranks).map(|rank| (rank * each).min(len)..((rank + 1) * each).min(len)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_meet_at_blocks_and_cover_everything() {
        for (len, ranks) in [(16, 1), (16, 3), (10 * NORM_BLOCK, 4), (7 * NORM_BLOCK + 16, 3)] {
            let slices = slices(len, ranks);
            assert_eq!(slices.len(), ranks);
            assert_eq!((slices[0].start, slices[ranks - 1].end), (0, len));
            assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].start));
            let whole = |slice: &Range<usize>| slice.start.is_multiple_of(NORM_BLOCK);
            assert!(slices.iter().all(|slice| slice.is_empty() || whole(slice)));
        }
    }

    #[test]
    fn rows_follow_the_order_of_ranks() {
        let slices = slices(16, 3);
        let scatter = Scatter { slices: &slices, parts: &[1, 2, 1] };
        assert_eq!([0, 1, 2].map(|rank| scatter.rows(rank)), [0..1, 1..3, 3..4]);
        assert_eq!(scatter.all_rows(), 4);
    }
}
