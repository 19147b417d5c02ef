//! The exchange between ranks that train one model: gradients to the owners of their slices,
//! updated parameters back to all, and the sums of the gradients.
//!
//! The flat buffers are cut into a slice for each rank ([`Partition`]). Sums are made here and not on the way: what
//! a network adds up on the way has no order of its own.

use std::ops::Range;

use super::{Memory, Partition};
use crate::Error;

/// The exchange between ranks, and the sums of what arrives.
pub trait Exchange: Memory {
    /// The connection of this rank to all others.
    type Peers: Send;

    /// Connects this rank to all others; every rank calls it.
    fn join(&self, meeting: &mut dyn Rendezvous) -> Result<Self::Peers, Error>;

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

    /// Sends rank `j` its piece of one bucket of each of this rank's `parts`, and receives the own piece
    /// of all others'. `to` is `[all parts of all ranks, own slice]`, in the order of ranks; this rank's
    /// own are copied. All ranks exchange the same buckets in the same order.
    fn scatter(
        &self,
        peers: &mut Self::Peers,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Self::Floats],
        to: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// The same beside the operations enqueued afterwards, where the device can. Until
    /// [`finish_scatters`](Self::finish_scatters) they may not write to the bucket of the parts, nor use
    /// `to`.
    fn begin_scatter(
        &self,
        peers: &mut Self::Peers,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Self::Floats],
        to: &mut Self::Floats,
    ) -> Result<(), Error> {
        self.scatter(peers, scatter, bucket, parts, to)
    }
    /// Operations enqueued afterwards wait for all that [`begin_scatter`](Self::begin_scatter) began.
    fn finish_scatters(&self, _peers: &mut Self::Peers) -> Result<(), Error> {
        Ok(())
    }
    /// Says that other ranks are not coming any more: closing the connection does not wait for what they
    /// still owe.
    fn abandon(_peers: &mut Self::Peers) {}
    /// Every rank's pieces of `floats` to all others.
    fn gather_floats(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        floats: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// Every rank's updated pieces of the parameters to all others, in the precision that passes
    /// read them in.
    fn gather_weights(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// Every rank's pieces of the parameters to all others, in full precision, so that
    /// [`read_weights`](Memory::read_weights) gives all of them.
    fn gather_full_weights(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// The bytes [`gather_weights`](Self::gather_weights) sends of `len` parameters, to one rank.
    fn weight_message_bytes(len: usize) -> usize {
        len * size_of::<f32>()
    }
}

/// How ranks that know each other as hosts bring their devices together.
pub trait Rendezvous {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// The bytes that rank 0 gives, at every rank.
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

/// How much each rank sends to each other.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// The pieces of each rank.
    pub partition: &'a Partition,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_order_of_ranks() {
        let partition = Partition::new(16, 3, &[]);
        let scatter = Scatter { partition: &partition, parts: &[1, 2, 1] };
        assert_eq!([0, 1, 2].map(|rank| scatter.rows(rank)), [0..1, 1..3, 3..4]);
        assert_eq!(scatter.all_rows(), 4);
    }
}
