//! A step in shards: the gradients of this rank's shards, the sum of those of all ranks, and the
//! update of this rank's slice.

use std::ops::Range;

use f2_engine::{AdamW, Device, Moments, NORM_BLOCK, Partition};

use super::outgoing::{Outgoing, Sums};
use super::{Ranks, Shards, partition};
use crate::Error;
use crate::model::{Decoder, Model, Network};
use crate::objective::{Objective, Step};

/// The buffers of a step in shards, and who owns what.
pub(in crate::train) struct Sharded<D: Device> {
    shards: Shards,
    rank: usize,
    /// The part of the flat buffers that each rank owns.
    partition: Partition,
    /// Sums of shards whose other half is still to come; the gradient of the last shard may be in
    /// the network's own buffer.
    kept: Vec<D::Floats>,
    nodes: Vec<Range<usize>>,
    /// `[parts of all ranks, own slice]`; empty with a single rank.
    received: D::Floats,
    /// `[ranks, most shards]`: the loss of every shard.
    losses: D::Floats,
    /// The loss of the batch.
    pub(in crate::train) loss: D::Floats,
    /// Sums of squares, two floats per block of the flat buffer.
    sums: D::Floats,
}

impl<D: Device> Sharded<D> {
    /// Allocates the buffers of rank `rank`.
    pub(in crate::train) fn new(
        device: &D,
        decoder: &Decoder,
        shards: Shards,
        rank: usize,
    ) -> Result<Self, Error> {
        let (len, partition) = (decoder.layout.len(), partition(decoder, shards.ranks));
        let kept = (0..shards.kept(rank)).map(|_| device.floats(len));
        Ok(Self {
            kept: kept.collect::<Result<_, _>>()?,
            nodes: Vec::new(),
            received: device.floats(received(&partition, shards, rank))?,
            losses: device.floats(shards.ranks * shards.most())?,
            loss: device.floats(1)?,
            sums: device.floats(2 * len.div_ceil(NORM_BLOCK))?,
            partition,
            shards,
            rank,
        })
    }

    /// The floats that [`new`](Self::new) allocates for the gradients of other ranks and earlier
    /// shards.
    pub(in crate::train) fn floats(partition: &Partition, shards: Shards, rank: usize) -> usize {
        shards.kept(rank) * partition.bucket(0).end + received(partition, shards, rank)
    }

    /// The number of this rank.
    pub(in crate::train) fn rank(&self) -> usize {
        self.rank
    }

    /// The part of the flat buffers that each rank owns.
    pub(in crate::train) fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Computes the gradients of this rank's shards, and begins to send them to their owners.
    pub(in crate::train) fn accumulate(
        &mut self,
        step: &mut Step<'_, D>,
        objective: &mut dyn Objective<D>,
        ranks: &mut Option<Ranks<D>>,
    ) -> Result<(), Error> {
        let own = self.shards.of_rank(self.rank);
        for shard in own.clone() {
            step.enter(shard);
            objective.survey(step)?;
        }
        objective.settle(&mut |counts| match ranks {
            Some(ranks) => Ok(ranks.control.sum(counts)?),
            None => Ok(()),
        })?;
        self.nodes.clear();
        for (place, shard) in own.clone().enumerate() {
            step.enter(shard);
            let completed = self.complete(shard);
            match others(ranks).filter(|_| shard + 1 == own.end) {
                Some(ranks) => self.send(step, objective, ranks, &completed)?,
                None => {
                    objective.accumulate(step)?;
                    self.keep(step.network, &completed);
                }
            }
            let network = &mut *step.network;
            let at = self.rank * self.shards.most() + place;
            network.model.device.copy_floats(&network.total, 0..1, &mut self.losses, at);
            network.clear_loss();
        }
        Ok(())
    }

    /// Adds a shard to the nodes, and returns the indices of the sums it completes, in order.
    fn complete(&mut self, shard: usize) -> Vec<usize> {
        self.nodes.push(shard..shard + 1);
        let mut completed = Vec::new();
        while self.shards.joined(&mut self.nodes) {
            completed.push(self.nodes.len() - 1);
        }
        completed
    }

    /// Adds the gradient of a shard to the sums it completes, or keeps it for later.
    fn keep(&mut self, network: &mut Network<D>, completed: &[usize]) {
        let Network { model: Model { device, decoder, .. }, gradients, .. } = network;
        let all = 0..decoder.layout.len();
        if completed.is_empty() {
            device.copy_floats(gradients, all, &mut self.kept[self.nodes.len() - 1], 0);
        } else {
            Sums { kept: &mut self.kept, completed }.add(device, gradients, &all);
        }
        device.zero_floats(gradients);
    }

    /// Computes the gradient of the last shard, and begins to send each bucket once it is final.
    fn send(
        &mut self,
        step: &mut Step<'_, D>,
        objective: &mut dyn Objective<D>,
        ranks: &mut Ranks<D>,
        completed: &[usize],
    ) -> Result<(), Error> {
        let overlap = ranks.overlap;
        let mut outgoing = Outgoing {
            ranks,
            shards: self.shards,
            partition: &self.partition,
            sums: Sums { kept: &mut self.kept, completed },
            nodes: self.nodes.len(),
            received: &mut self.received,
            sent: 0,
        };
        if overlap {
            objective.accumulate(&mut step.handing_over(&mut outgoing))?;
        } else {
            objective.accumulate(step)?;
        }
        outgoing.send_rest(&step.network.model.device, &step.network.gradients)
    }

    /// Sums the gradients of all ranks in this rank's slice, and the losses; then computes the norm
    /// of the whole gradient.
    pub(in crate::train) fn reduce(
        &mut self,
        network: &mut Network<D>,
        ranks: &mut Option<Ranks<D>>,
        norm: &mut D::Floats,
    ) -> Result<(), Error> {
        let device = &network.model.device;
        let own = self.partition.owned(self.rank);
        let ranks = &mut others(ranks);
        if let Some(ranks) = ranks {
            device.finish_scatters(&mut ranks.peers)?;
            device.zero_floats(&mut network.gradients);
            for (to, from) in self.shards.additions() {
                device.add_within(&mut self.received, from * own..(from + 1) * own, to * own);
            }
            let most = self.shards.most();
            let rows = (0..self.shards.ranks).map(|rank| rank * most..(rank + 1) * most);
            let rows = Partition::of_pieces(rows.collect());
            device.gather_floats(&mut ranks.peers, &rows, &mut self.losses)?;
        }
        let losses = self.shards.ranks * self.shards.most();
        device.add_in_order(losses, &self.losses, &mut self.loss);
        let block = |at: usize| 2 * at.div_ceil(NORM_BLOCK);
        let total = if ranks.is_some() { &self.received } else { &self.kept[0] };
        for (at, piece) in self.partition.slice(self.rank) {
            device.square_sums(at..at + piece.len(), total, &mut self.sums, block(piece.start));
        }
        if let Some(ranks) = ranks {
            device.gather_floats(&mut ranks.peers, &self.partition.map(block), &mut self.sums)?;
        }
        let blocks = self.partition.bucket(0).end.div_ceil(NORM_BLOCK);
        device.norm_of_sums(blocks, &self.sums, norm);
        Ok(())
    }

    /// Updates this rank's slice of the parameters, and fetches the others'.
    pub(in crate::train) fn update(
        &mut self,
        model: &mut Model<D>,
        ranks: &mut Option<Ranks<D>>,
        update: AdamW,
        decayed: &[Range<usize>],
        norm: &D::Floats,
        moments: &mut Moments<D>,
    ) -> Result<(), Error> {
        let Model { device, weights, .. } = model;
        let ranks = others(ranks);
        let total = if ranks.is_some() { &mut self.received } else { &mut self.kept[0] };
        for (at, piece) in self.partition.slice(self.rank) {
            device.adamw_piece(update, decayed, norm, piece, at, weights, moments, total);
        }
        if let Some(ranks) = ranks {
            device.gather_weights(&mut ranks.peers, &self.partition, weights)?;
        }
        Ok(())
    }
}

/// The floats a rank receives.
fn received(partition: &Partition, shards: Shards, rank: usize) -> usize {
    let parts = if shards.ranks == 1 { 0 } else { shards.parts().iter().sum() };
    parts * partition.owned(rank)
}

/// The connection, if there is another rank.
fn others<D: Device>(ranks: &mut Option<Ranks<D>>) -> Option<&mut Ranks<D>> {
    ranks.as_mut().filter(|ranks| ranks.place()[1] > 1)
}
