//! The exchange between ranks on the CPU: slices of `f32`, sent over the connection of the hosts.

use std::ops::Range;

use super::Cpu;
use super::memory::Buffer;
use crate::{Error, Exchange, HostPeers, Partition, Rendezvous, Scatter};

/// Elements processed by one task.
const BLOCK: usize = 1 << 15;

impl Exchange for Cpu {
    type Peers = Box<dyn HostPeers>;

    fn join(&self, meeting: &mut dyn Rendezvous) -> Result<Self::Peers, Error> {
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
        bucket: usize,
        parts: &[&Buffer],
        to: &mut Buffer,
    ) -> Result<(), Error> {
        let (own, pieces) = (peers.rank(), scatter.partition.pieces(bucket));
        let owned = scatter.partition.owned(own);
        let at = scatter.partition.place(bucket, own);
        let piece = pieces[own].clone();
        let sends = sent(own, pieces, parts);
        if piece.is_empty() {
            return peers.exchange(&sends, &mut []);
        }
        let mut receives = Vec::new();
        let mut rows = to.chunks_mut(owned).map(|row| &mut row[at..at + piece.len()]);
        for (rank, &count) in scatter.parts.iter().enumerate() {
            for (index, row) in rows.by_ref().take(count).enumerate() {
                if rank == own {
                    row.copy_from_slice(&parts[index][piece.clone()]);
                } else {
                    receives.push((rank, row));
                }
            }
        }
        peers.exchange(&sends, &mut receives)
    }

    fn gather_floats(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        floats: &mut Buffer,
    ) -> Result<(), Error> {
        let (own, ranks) = (peers.rank(), partition.ranks());
        let pieces = |rank| partition.slice(rank).map(move |(_, piece)| (rank, piece));
        let mut all: Vec<_> = (0..ranks).flat_map(pieces).collect();
        all.sort_by_key(|(_, piece)| piece.start);
        let (mut sends, mut receives): (Vec<(usize, &[f32])>, _) = (Vec::new(), Vec::new());
        let (mut left, mut at) = (&mut floats[..], 0);
        for (rank, piece) in all {
            let (_, from) = left.split_at_mut(piece.start - at);
            let (floats, after) = from.split_at_mut(piece.len());
            (left, at) = (after, piece.end);
            if rank == own {
                let floats = &*floats;
                sends.extend((0..ranks).filter(|other| *other != own).map(|other| (other, floats)));
            } else {
                receives.push((rank, floats));
            }
        }
        peers.exchange(&sends, &mut receives)
    }

    fn gather_weights(
        &self,
        peers: &mut Self::Peers,
        partition: &Partition,
        weights: &mut Buffer,
    ) -> Result<(), Error> {
        self.gather_floats(peers, partition, weights)
    }

    /// Nothing to do: `gather_weights` sends them in full precision.
    fn gather_full_weights(
        &self,
        _: &mut Self::Peers,
        _: &Partition,
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

/// The pieces of this rank's parts for all other ranks; empty ones are not sent.
fn sent<'a>(own: usize, pieces: &[Range<usize>], parts: &[&'a Buffer]) -> Vec<(usize, &'a [f32])> {
    let pieces = pieces.iter().cloned().enumerate();
    let others = pieces.filter(|(rank, piece)| *rank != own && !piece.is_empty());
    others
        .flat_map(|(rank, piece)| parts.iter().map(move |part| (rank, &part[piece.clone()])))
        .collect()
}
