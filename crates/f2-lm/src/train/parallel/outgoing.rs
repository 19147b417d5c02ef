//! The gradients of this rank on their way to the owners of their slices, bucket by bucket.

use std::ops::Range;

use f2_engine::{Device, Partition, Scatter};

use super::{Ranks, Shards};
use crate::Error;
use crate::model::{Decoder, Handover};

/// The part of the flat buffers that each rank owns. Buckets end where the backward pass finishes
/// a part of the gradient.
pub(in crate::train) fn partition(decoder: &Decoder, ranks: usize) -> Partition {
    let finals = if ranks == 1 { Vec::new() } else { decoder.finals() };
    Partition::new(decoder.layout.len(), ranks, &finals)
}

/// The nodes of the tree that this rank's shards add up to, sent bucket by bucket as soon as the
/// gradient of the last shard is final.
pub(super) struct Outgoing<'a, D: Device> {
    pub(super) ranks: &'a mut Ranks<D>,
    pub(super) shards: Shards,
    pub(super) partition: &'a Partition,
    pub(super) sums: Sums<'a, D>,
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// `[parts of all ranks, own slice]`.
    pub(super) received: &'a mut D::Floats,
    /// How many buckets have been sent.
    pub(super) sent: usize,
}

impl<D: Device> Outgoing<'_, D> {
    /// Sends the buckets that were not handed over.
    pub(super) fn send_rest(&mut self, device: &D, gradients: &D::Floats) -> Result<(), Error> {
        while self.sent < self.partition.buckets() {
            self.take(device, gradients)?;
        }
        Ok(())
    }
}

impl<D: Device> Handover<D> for Outgoing<'_, D> {
    fn starts(&self) -> Vec<usize> {
        let buckets = 0..self.partition.buckets();
        buckets.map(|bucket| self.partition.bucket(bucket).start).collect()
    }

    fn take(&mut self, device: &D, gradients: &D::Floats) -> Result<(), Error> {
        let bucket = self.sent;
        self.sums.add(device, gradients, &self.partition.bucket(bucket));
        // The last node is in the network's buffer, unless it was added to another.
        let in_network = self.sums.completed.is_empty();
        let kept = self.sums.kept[..self.nodes - usize::from(in_network)].iter();
        let parts: Vec<&D::Floats> = kept.chain(in_network.then_some(gradients)).collect();
        let counts = self.shards.parts();
        let scatter = Scatter { partition: self.partition, parts: &counts };
        let Ranks { peers, overlap, .. } = &mut *self.ranks;
        if *overlap {
            device.begin_scatter(peers, &scatter, bucket, &parts, self.received)?;
        } else {
            device.scatter(peers, &scatter, bucket, &parts, self.received)?;
        }
        self.sent += 1;
        Ok(())
    }
}

/// The sums that the gradient of a shard completes.
pub(super) struct Sums<'a, D: Device> {
    /// Sums whose other half is still to come.
    pub(super) kept: &'a mut [D::Floats],
    /// Indices of the sums to add to, in order: the gradient is added to the first, and each sum to
    /// the next.
    pub(super) completed: &'a [usize],
}

impl<D: Device> Sums<'_, D> {
    /// Adds up the elements in `range`.
    pub(super) fn add(&mut self, device: &D, gradients: &D::Floats, range: &Range<usize>) {
        for (turn, &left) in self.completed.iter().enumerate() {
            let (lefts, rights) = self.kept.split_at_mut(left + 1);
            let right = if turn == 0 { gradients } else { &rights[0] };
            device.add_floats(right, range.clone(), &mut lefts[left], range.start);
        }
    }
}
