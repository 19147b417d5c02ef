//! The exchange between ranks on GPUs, by NCCL, and the sums of what arrives.

mod nccl;
mod peers;

use std::ops::Range;

use cudarc::driver::result;

use self::peers::Message;
use super::memory::{Buffer, Weights};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{Error, Exchange, Meeting, Scatter};

pub use nccl::{NcclId, nccl_version};
pub use peers::NcclPeers;

kernels! {
    ADD_FLOATS: (usize, Address, Address) = add_floats;
    ADD_IN_ORDER: (usize, Address, Address) = add_in_order;
}

impl<P: Precision> Exchange for Cuda<P> {
    type Peers = NcclPeers;

    /// By an id that rank 0 makes.
    fn join(&self, meeting: &mut dyn Meeting) -> Result<NcclPeers, Error> {
        // A rank without NCCL says so, before others wait for it.
        nccl_version()?;
        let (rank, size) = (meeting.rank(), meeting.size());
        let id = if rank == 0 { NcclId::new()?.0.to_vec() } else { Vec::new() };
        let id = meeting.share(id)?.try_into().map_err(|_| Error::Exchange {
            reason: "what rank 0 sent is no id of NCCL; are all ranks of one version?".to_owned(),
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
        self.stream.count();
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
        parts: &[&Buffer<f32>],
        to: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let own = peers.rank();
        let slice = &scatter.slices[own];
        check_fits(to, &(0..scatter.all_rows() * slice.len()));
        for (row, part) in scatter.rows(own).zip(parts) {
            self.copy_floats(part, slice.clone(), to, row * slice.len());
        }
        let mut messages = Vec::new();
        for (rank, theirs) in scatter.slices.iter().enumerate().filter(|(rank, _)| *rank != own) {
            let bytes = theirs.len() * size_of::<f32>();
            for part in parts.iter().filter(|_| bytes > 0) {
                check_fits(part, theirs);
                messages.push(Message::Send { to: rank, start: part.at(theirs.start), bytes });
            }
            let bytes = slice.len() * size_of::<f32>();
            for row in scatter.rows(rank).filter(|_| bytes > 0) {
                let start = to.at(row * slice.len());
                messages.push(Message::Receive { from: rank, start, bytes });
            }
        }
        // SAFETY: all ranges were checked against their buffers.
        unsafe { peers.exchange("sending gradients to their owners", &messages) }
    }

    fn gather_floats(
        &self,
        peers: &mut NcclPeers,
        slices: &[Range<usize>],
        floats: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        spread(peers, "sending every rank's part to all", slices, floats)
    }

    /// In full precision, rounded by everyone who receives them.
    fn gather_weights(
        &self,
        peers: &mut NcclPeers,
        slices: &[Range<usize>],
        weights: &mut Weights<P>,
    ) -> Result<(), Error> {
        spread(peers, "sending parameters to all", slices, &weights.values)?;
        let own = &slices[peers.rank()];
        let end = slices.last().map_or(0, |last| last.end);
        // The update has rounded the own ones.
        for received in [0..own.start, own.end..end] {
            self.round_weights(received, weights);
        }
        Ok(())
    }

    /// They are everywhere already.
    fn gather_full_weights(
        &self,
        _: &mut NcclPeers,
        _: &[Range<usize>],
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
}

/// Every rank's slice to all others, at the same place.
fn spread(
    peers: &mut NcclPeers,
    what: &str,
    slices: &[Range<usize>],
    floats: &Buffer<f32>,
) -> Result<(), Error> {
    let mut messages = Vec::new();
    for (from, slice) in slices.iter().enumerate().filter(|(_, slice)| !slice.is_empty()) {
        check_fits(floats, slice);
        let bytes = slice.len() * size_of::<f32>();
        messages.push(Message::Spread { from, start: floats.at(slice.start), bytes });
    }
    // SAFETY: all ranges were checked against the buffer.
    unsafe { peers.exchange(what, &messages) }
}

fn check_fits(buffer: &Buffer<f32>, range: &Range<usize>) {
    assert!(range.end <= buffer.len(), "{range:?} of a buffer of {} floats", buffer.len());
}
