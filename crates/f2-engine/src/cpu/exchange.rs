//! The exchange between ranks on the CPU: whatever connects the hosts moves slices of `f32`.

use std::ops::Range;

use super::Cpu;
use super::memory::Buffer;
use crate::{Error, Exchange, HostPeers, Meeting, Scatter};

/// Elements one task adds up.
const BLOCK: usize = 1 << 15;

impl Exchange for Cpu {
    type Peers = Box<dyn HostPeers>;

    fn join(&self, meeting: &mut dyn Meeting) -> Result<Self::Peers, Error> {
        let reason = "the hosts have no connection that carries numbers".to_owned();
        meeting.host_peers().ok_or(Error::Exchange { reason })
    }

    fn copy_floats(&self, from: &Buffer, range: Range<usize>, to: &mut Buffer, at: usize) {
        let (from, len) = (&from[range.clone()], range.len());
        let to = &mut to[at..at + len];
        self.threads.zip_chunks([(to, BLOCK)], |index, [to]| {
            to.copy_from_slice(&from[index * BLOCK..][..to.len()]);
        });
    }

    fn add_floats(&self, from: &Buffer, range: Range<usize>, to: &mut Buffer, at: usize) {
        let len = range.len();
        self.add_slice(&from[range], &mut to[at..at + len]);
    }

    fn add_within(&self, floats: &mut Buffer, range: Range<usize>, at: usize) {
        let len = range.len();
        if at < range.start {
            let (to, from) = floats.split_at_mut(range.start);
            self.add_slice(&from[..len], &mut to[at..at + len]);
        } else {
            let (from, to) = floats.split_at_mut(at);
            self.add_slice(&from[range], &mut to[..len]);
        }
    }

    fn add_in_order(&self, len: usize, from: &Buffer, to: &mut Buffer) {
        to[0] = from[..len].iter().copied().map(f64::from).sum::<f64>() as f32;
    }

    fn scatter(
        &self,
        peers: &mut Self::Peers,
        scatter: &Scatter<'_>,
        parts: &[&Buffer],
        to: &mut Buffer,
    ) -> Result<(), Error> {
        let own = peers.rank();
        let slice = scatter.slices[own].clone();
        if slice.is_empty() {
            return peers.exchange(&sent(own, scatter, parts), &mut []);
        }
        let mut receives = Vec::new();
        let mut rows = to.chunks_mut(slice.len());
        for (rank, &count) in scatter.parts.iter().enumerate() {
            for (index, row) in rows.by_ref().take(count).enumerate() {
                if rank == own {
                    row.copy_from_slice(&parts[index][slice.clone()]);
                } else {
                    receives.push((rank, row));
                }
            }
        }
        peers.exchange(&sent(own, scatter, parts), &mut receives)
    }

    fn gather_floats(
        &self,
        peers: &mut Self::Peers,
        slices: &[Range<usize>],
        floats: &mut Buffer,
    ) -> Result<(), Error> {
        let own = peers.rank();
        let (before, rest) = floats.split_at_mut(slices[own].start);
        let (mine, after) = rest.split_at_mut(slices[own].len());
        let mine = &*mine;
        let others = (0..slices.len()).filter(|rank| *rank != own && !mine.is_empty());
        let sends: Vec<_> = others.map(|rank| (rank, mine)).collect();
        let mut receives = Vec::new();
        let sides = [(0..own, before, 0), (own + 1..slices.len(), after, slices[own].end)];
        for (ranks, mut left, mut at) in sides {
            for rank in ranks.filter(|rank| !slices[*rank].is_empty()) {
                let (_, from) = left.split_at_mut(slices[rank].start - at);
                let (slice, from) = from.split_at_mut(slices[rank].len());
                receives.push((rank, slice));
                (left, at) = (from, slices[rank].end);
            }
        }
        peers.exchange(&sends, &mut receives)
    }

    fn gather_weights(
        &self,
        peers: &mut Self::Peers,
        slices: &[Range<usize>],
        weights: &mut Buffer,
    ) -> Result<(), Error> {
        self.gather_floats(peers, slices, weights)
    }

    /// Passes read them in full precision: all are everywhere already.
    fn gather_full_weights(
        &self,
        _: &mut Self::Peers,
        _: &[Range<usize>],
        _: &mut Buffer,
    ) -> Result<(), Error> {
        Ok(())
    }
}

impl Cpu {
    fn add_slice(&self, from: &[f32], to: &mut [f32]) {
        self.threads.zip_chunks([(to, BLOCK)], |index, [to]| {
            let from = &from[index * BLOCK..];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        });
    }
}

/// Every other rank's slice of this rank's parts; empty ones are not sent.
fn sent<'a>(own: usize, scatter: &Scatter<'_>, parts: &[&'a Buffer]) -> Vec<(usize, &'a [f32])> {
    let slices = scatter.slices.iter().cloned().enumerate();
    let others = slices.filter(|(rank, slice)| *rank != own && !slice.is_empty());
    others
        .flat_map(|(rank, slice)| parts.iter().map(move |part| (rank, &part[slice.clone()])))
        .collect()
}
