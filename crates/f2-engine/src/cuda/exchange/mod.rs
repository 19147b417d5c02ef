//! The exchange between ranks on GPUs, by NCCL, and the summation of what is received.

mod nccl;
mod peers;
mod side;

use std::ops::Range;

use cudarc::driver::result;

use self::peers::Message;
use super::memory::{Buffer, Weights};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{Error, Exchange, Partition, Rendezvous, Scatter};

pub use nccl::{NcclId, nccl_version};
pub use peers::NcclPeers;

kernels! {
    ADD_FLOATS: (usize, Address, Address) = add_floats;
    ADD_IN_ORDER: (usize, Address, Address) = add_in_order;
}

/// The description of a scatter in errors.
const SCATTERING: &str = "sending gradients to their owners";

impl<P: Precision> Exchange for Cuda<P> {
    type Peers = NcclPeers;

    /// Through an NCCL id that rank 0 creates.
    fn join(&self, meeting: &mut dyn Rendezvous) -> Result<NcclPeers, Error> {
        // A rank without NCCL fails here, before others wait for it.
        nccl_version()?;
        let (rank, size) = (meeting.rank(), meeting.size());
        let id = if rank == 0 { NcclId::new()?.0.to_vec() } else { Vec::new() };
        let id = meeting.share(id)?.try_into().map_err(|_| Error::Exchange {
            reason: "rank 0 did not send an NCCL id; do all ranks run the same version?".to_owned(),
        })?;
        self.connect(NcclId(id), rank, size)
    }

    fn copy_floats(
        &self,
        from: &Buffer<f32>,
        range: Range<usize>,
        to: &mut Buffer<f32>,
        at: usize,
    ) {
        check_fits(from, &range);
        check_fits(to, &(at..at + range.len()));
        if range.is_empty() {
            return;
        }
        self.stream.count_operation();
        let bytes = range.len() * size_of::<f32>();
        // SAFETY: both ranges lie in their buffers.
        let copied = unsafe {
            result::memcpy_dtod_async(to.at(at), from.at(range.start), bytes, self.stream.raw())
        };
        self.stream.note("copying", copied);
    }

    fn add_floats(&self, from: &Buffer<f32>, range: Range<usize>, to: &mut Buffer<f32>, at: usize) {
        check_fits(from, &range);
        check_fits(to, &(at..at + range.len()));
        self.add_at(range.len(), from.at(range.start), to.at(at));
    }

    fn add_within(&self, floats: &mut Buffer<f32>, range: Range<usize>, at: usize) {
        check_fits(floats, &range);
        check_fits(floats, &(at..at + range.len()));
        self.add_at(range.len(), floats.at(range.start), floats.at(at));
    }

    fn add_in_order(&self, len: usize, from: &Buffer<f32>, to: &mut Buffer<f32>) {
        check_fits(from, &(0..len));
        let arguments = (len, from.at(0), to.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(ADD_IN_ORDER, Grid::blocks(1, 1024), arguments) };
    }

    fn scatter(
        &self,
        peers: &mut NcclPeers,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Buffer<f32>],
        to: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let messages = self.scattered(peers.rank(), scatter, bucket, parts, to);
        // SAFETY: `scattered` has checked all ranges against their buffers.
        unsafe { peers.exchange(SCATTERING, &messages) }
    }

    /// On a second stream, which waits for all operations enqueued so far.
    fn begin_scatter(
        &self,
        peers: &mut NcclPeers,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Buffer<f32>],
        to: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let messages = self.scattered(peers.rank(), scatter, bucket, parts, to);
        // SAFETY: `scattered` has checked all ranges against their buffers. Until
        // `finish_scatters`, the trait obliges the caller not to write to the bucket of `parts` or
        // use `to`.
        unsafe { peers.begin_exchange(SCATTERING, &messages) }
    }

    fn finish_scatters(&self, peers: &mut NcclPeers) -> Result<(), Error> {
        peers.finish_exchanges()
    }

    fn abandon(peers: &mut NcclPeers) {
        peers.abandon();
    }

    fn gather_floats(
        &self,
        peers: &mut NcclPeers,
        partition: &Partition,
        floats: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        gather(peers, "sending every rank's part to all", partition, floats)
    }

    /// In full precision; every rank rounds what it receives.
    fn gather_weights(
        &self,
        peers: &mut NcclPeers,
        partition: &Partition,
        weights: &mut Weights<P>,
    ) -> Result<(), Error> {
        gather(peers, "sending parameters to all", partition, &weights.values)?;
        // The update has already rounded this rank's own pieces.
        let mut own: Vec<_> = partition.slice(peers.rank()).map(|(_, piece)| piece).collect();
        own.sort_by_key(|piece| piece.start);
        let end = partition.bucket(0).end;
        let mut start = 0;
        for piece in own.into_iter().chain(std::iter::once(end..end)) {
            self.round_weights(start..piece.start, weights);
            start = piece.end;
        }
        Ok(())
    }

    /// Does nothing: `gather_weights` sends them in full precision.
    fn gather_full_weights(
        &self,
        _: &mut NcclPeers,
        _: &Partition,
        _: &mut Weights<P>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

impl<P: Precision> Cuda<P> {
    fn add_at(&self, count: usize, from: Address, to: Address) {
        // SAFETY: callers check both ranges against their buffers.
        unsafe { self.launch(ADD_FLOATS, Grid::items(count.div_ceil(4)), (count, from, to)) };
    }

    /// Copies this rank's own pieces of a bucket, and lists the messages to and from all others.
    fn scattered(
        &self,
        own: usize,
        scatter: &Scatter<'_>,
        bucket: usize,
        parts: &[&Buffer<f32>],
        to: &mut Buffer<f32>,
    ) -> Vec<Message> {
        let Scatter { partition, .. } = scatter;
        let (pieces, owned) = (partition.pieces(bucket), partition.owned(own));
        let (piece, at) = (&pieces[own], partition.place(bucket, own));
        check_fits(to, &(0..scatter.all_rows() * owned));
        for (row, part) in scatter.rows(own).zip(parts) {
            self.copy_floats(part, piece.clone(), to, row * owned + at);
        }
        let mut messages = Vec::new();
        for (rank, theirs) in pieces.iter().enumerate().filter(|(rank, _)| *rank != own) {
            let bytes = theirs.len() * size_of::<f32>();
            for part in parts.iter().filter(|_| bytes > 0) {
                check_fits(part, theirs);
                messages.push(Message::Send { to: rank, start: part.at(theirs.start), bytes });
            }
            let bytes = piece.len() * size_of::<f32>();
            for row in scatter.rows(rank).filter(|_| bytes > 0) {
                let start = to.at(row * owned + at);
                messages.push(Message::Receive { from: rank, start, bytes });
            }
        }
        messages
    }
}

/// Sends every rank's pieces to all others, to the same place in their buffers.
fn gather(
    peers: &mut NcclPeers,
    what: &str,
    partition: &Partition,
    floats: &Buffer<f32>,
) -> Result<(), Error> {
    let mut messages = Vec::new();
    for bucket in 0..partition.buckets() {
        let pieces = partition.pieces(bucket);
        check_fits(floats, &partition.bucket(bucket));
        let (start, each) = (floats.at(pieces[0].start), pieces[0].len());
        if each > 0 && pieces.iter().all(|piece| piece.len() == each) {
            messages.push(Message::Gather { start, each: each * size_of::<f32>() });
            continue;
        }
        for (from, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
            let bytes = piece.len() * size_of::<f32>();
            messages.push(Message::Broadcast { from, start: floats.at(piece.start), bytes });
        }
    }
    // SAFETY: all ranges were checked against the buffer.
    unsafe { peers.exchange(what, &messages) }
}

fn check_fits(buffer: &Buffer<f32>, range: &Range<usize>) {
    assert!(range.end <= buffer.len(), "{range:?} of a buffer of {} floats", buffer.len());
}
