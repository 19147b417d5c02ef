//! A step in shards: the gradients of this rank's shards, the sum of all ranks', and the update of this
//! rank's slice.

use std::ops::Range;

use f2_engine::{AdamW, Device, Moments, NORM_BLOCK, Scatter, slices};

use super::{Ranks, Shards};
use crate::Error;
use crate::model::{Model, Network};
use crate::objective::{Objective, Step};

/// The buffers of a step in shards, and who owns what.
pub(in crate::train) struct Sharded<D: Device> {
    shards: Shards,
    rank: usize,
    /// The slice of the flat buffers that each rank owns.
    slices: Vec<Range<usize>>,
    /// Sums of shards that wait for their other half; the gradient of the last one may be in the
    /// network's own buffer.
    kept: Vec<D::Floats>,
    nodes: Vec<Range<usize>>,
    /// Whether the last node is in the network's buffer.
    in_network: bool,
    /// `[parts of all ranks, own slice]`; nothing where there is one rank.
    received: D::Floats,
    /// `[ranks, most shards]`: the loss of every shard.
    losses: D::Floats,
    /// The loss of the batch.
    pub(in crate::train) loss: D::Floats,
    /// Sums of squares, two floats to a block of the flat buffer.
    sums: D::Floats,
}

impl<D: Device> Sharded<D> {
    /// Allocates the buffers of rank `rank`, for `len` parameters.
    pub(in crate::train) fn new(
        device: &D,
        len: usize,
        shards: Shards,
        rank: usize,
    ) -> Result<Self, Error> {
        let slices = slices(len, shards.ranks);
        let kept = (0..shards.kept(rank)).map(|_| device.floats(len));
        let parts = if shards.ranks == 1 { 0 } else { shards.parts().iter().sum() };
        Ok(Self {
            kept: kept.collect::<Result<_, _>>()?,
            nodes: Vec::new(),
            in_network: false,
            received: device.floats(parts * slices[rank].len())?,
            losses: device.floats(shards.ranks * shards.most())?,
            loss: device.floats(1)?,
            sums: device.floats(2 * len.div_ceil(NORM_BLOCK))?,
            slices,
            shards,
            rank,
        })
    }

    /// The floats that [`new`](Self::new) allocates for the gradients of others, or of earlier shards.
    pub(in crate::train) fn floats(len: usize, shards: Shards, rank: usize) -> usize {
        let parts = if shards.ranks == 1 { 0 } else { shards.parts().iter().sum() };
        shards.kept(rank) * len + parts * slices(len, shards.ranks)[rank].len()
    }

    /// The slice that this rank owns.
    pub(in crate::train) fn slice(&self) -> Range<usize> {
        self.slices[self.rank].clone()
    }

    /// The slices of all ranks.
    pub(in crate::train) fn slices(&self) -> &[Range<usize>] {
        &self.slices
    }

    /// Computes the gradients of this rank's shards.
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
            objective.accumulate(step)?;
            let network = &mut *step.network;
            let at = self.rank * self.shards.most() + place;
            network.model.device.copy_floats(&network.total, 0..1, &mut self.losses, at);
            network.clear_loss();
            self.add(network, shard, shard + 1 == own.end);
        }
        Ok(())
    }

    /// Adds the gradient of a shard to the sums it completes, and keeps it for later where it
    /// completes none.
    fn add(&mut self, network: &mut Network<D>, shard: usize, last: bool) {
        let Network { model: Model { device, .. }, gradients, .. } = network;
        let len = self.slices[self.shards.ranks - 1].end;
        self.nodes.push(shard..shard + 1);
        self.in_network = true;
        while self.shards.joined(&mut self.nodes) {
            let left = self.nodes.len() - 1;
            if self.in_network {
                device.add_floats(gradients, 0..len, &mut self.kept[left], 0);
                device.zero_floats(gradients);
                self.in_network = false;
            } else {
                let (lefts, rights) = self.kept.split_at_mut(left + 1);
                device.add_floats(&rights[0], 0..len, &mut lefts[left], 0);
            }
        }
        if self.in_network && !last {
            device.copy_floats(gradients, 0..len, &mut self.kept[self.nodes.len() - 1], 0);
            device.zero_floats(gradients);
            self.in_network = false;
        }
    }

    /// Makes one sum of all ranks' gradients, of this rank's slice, and one loss. Then the norm of
    /// the whole gradient.
    pub(in crate::train) fn reduce(
        &mut self,
        network: &mut Network<D>,
        ranks: &mut Option<Ranks<D>>,
        norm: &mut D::Floats,
    ) -> Result<(), Error> {
        let device = &network.model.device;
        let own = self.slice();
        let ranks = &mut others(ranks);
        if let Some(ranks) = ranks {
            let count = self.nodes.len() - usize::from(self.in_network);
            let kept = self.kept[..count].iter();
            let parts: Vec<&D::Floats> =
                kept.chain(self.in_network.then_some(&network.gradients)).collect();
            let scatter = Scatter { slices: &self.slices, parts: &self.shards.parts() };
            device.scatter(&mut ranks.peers, &scatter, &parts, &mut self.received)?;
            device.zero_floats(&mut network.gradients);
            for (to, from) in self.shards.additions() {
                let from = from * own.len()..(from + 1) * own.len();
                device.add_within(&mut self.received, from, to * own.len());
            }
            let most = self.shards.most();
            let rows: Vec<_> =
                (0..self.shards.ranks).map(|rank| rank * most..(rank + 1) * most).collect();
            device.gather_floats(&mut ranks.peers, &rows, &mut self.losses)?;
        }
        let losses = self.shards.ranks * self.shards.most();
        device.add_in_order(losses, &self.losses, &mut self.loss);
        let block = |at: usize| 2 * at.div_ceil(NORM_BLOCK);
        let total = if ranks.is_some() { &self.received } else { &self.kept[0] };
        device.square_sums(own.len(), total, &mut self.sums, block(own.start));
        if let Some(ranks) = ranks {
            let rows: Vec<_> =
                self.slices.iter().map(|slice| block(slice.start)..block(slice.end)).collect();
            device.gather_floats(&mut ranks.peers, &rows, &mut self.sums)?;
        }
        let blocks = self.slices[self.shards.ranks - 1].end.div_ceil(NORM_BLOCK);
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
        let own = self.slice();
        let ranks = others(ranks);
        let total = if ranks.is_some() { &mut self.received } else { &mut self.kept[0] };
        device.adamw_slice(update, decayed, norm, own, weights, moments, total);
        if let Some(ranks) = ranks {
            device.gather_weights(&mut ranks.peers, &self.slices, weights)?;
        }
        Ok(())
    }
}

/// The connection, where it leads to another rank.
fn others<D: Device>(ranks: &mut Option<Ranks<D>>) -> Option<&mut Ranks<D>> {
    ranks.as_mut().filter(|ranks| ranks.place()[1] > 1)
}
