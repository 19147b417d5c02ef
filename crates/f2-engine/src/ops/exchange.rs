//! The exchange between ranks that train one model: gradients are sent to the owners of their
//! slices, and updated parameters back to all ranks.
//!
//! Each rank owns a slice of the flat buffers ([`Partition`]). The owner sums the gradients it
//! receives: a reduction by the network would have no fixed order.

use std::ops::Range;

use super::{Memory, Partition};
use crate::Error;

/// The exchange between ranks, and the summation of what is received.
pub trait Exchange: Memory {
    /// The connection of this rank to all others.
    type Peers: Send;

    /// Connects this rank to all others; a collective call.
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
    /// `floats[at..] += floats[range]`; the ranges must not overlap.
    fn add_within(&self, floats: &mut Self::Floats, range: Range<usize>, at: usize);
    /// `to[0] = Σ from[..len]`, summed in order in double precision, so zeros do not change it.
    fn add_in_order(&self, len: usize, from: &Self::Floats, to: &mut Self::Floats);

    /// Sends every rank its piece of one bucket of each of this rank's `parts`, and receives this
    /// rank's piece of the parts of all others. `to: [parts of all ranks, length of this rank's
    /// slice]`, in rank order; this rank's own parts are copied. All ranks must exchange the same
    /// buckets in the same order.
    fn scatter(
        &self,
        peers: &mut Self::Peers,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Self::Floats],
        to: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// [`scatter`](Self::scatter), overlapped with the operations enqueued afterwards if the device
    /// supports it. Until [`finish_scatters`](Self::finish_scatters), these must neither write to
    /// this bucket of `parts` nor use `to`.
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
    /// Makes operations enqueued afterwards wait for all scatters started by
    /// [`begin_scatter`](Self::begin_scatter).
    fn finish_scatters(&self, _peers: &mut Self::Peers) -> Result<(), Error> {
        Ok(())
    }
    /// Declares that other ranks have failed, so that closing the connection does not wait for
    /// their messages.
    fn abandon(_peers: &mut Self::Peers) {}
    /// Sends every rank's pieces of `floats` to all others.
    fn gather_floats(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        floats: &mut Self::Floats,
    ) -> Result<(), Error>;
    /// Sends every rank's updated pieces of the parameters to all others, in a precision sufficient
    /// for forward and backward passes.
    fn gather_weights(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// Makes the parameters complete in full precision on every rank, for
    /// [`read_weights`](Memory::read_weights).
    fn gather_full_weights(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        weights: &mut Self::Weights,
    ) -> Result<(), Error>;
    /// The bytes [`gather_weights`](Self::gather_weights) sends to one rank for `len` parameters.
    fn weight_message_bytes(len: usize) -> usize {
        len * size_of::<f32>()
    }
}

/// The connection between the ranks' hosts, over which devices establish their own.
pub trait Rendezvous {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// The number of ranks.
    fn size(&self) -> usize;
    /// Broadcasts: returns the `bytes` of rank 0 on every rank.
    fn share(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, Error>;
    /// A connection that carries `f32` values for devices without one of their own, if there is
    /// any.
    fn host_peers(&mut self) -> Option<Box<dyn HostPeers>>;
}

/// The connection of this rank's host to the other hosts, carrying `f32` values.
pub trait HostPeers: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Sends and receives all listed messages, each with its destination or source rank. Messages
    /// between two ranks arrive in order; every send has a matching receive.
    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error>;
}

/// How much each rank sends to every other.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// The pieces of each rank.
    pub partition: &'a Partition,
    /// The number of parts each rank sends.
    pub parts: &'a [usize],
}

impl Scatter<'_> {
    /// The rows of the receive buffer that hold a rank's parts.
    pub fn rows(&self, rank: usize) -> Range<usize> {
        let before: usize = self.parts[..rank].iter().sum();
        before..before + self.parts[rank]
    }

    /// The number of rows of the receive buffer.
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
