//! The exchange between ranks, which are threads of this process, and the optimiser over slices.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use f2_engine::prelude::*;
use f2_engine::{
    AdamW, Cpu, Decay, Error, HostPeers, Layout, Moments, NORM_BLOCK, Partition, Scatter,
};

use super::{Bench, narrow, random};

/// The connection of a rank that is a thread: a channel to and from each rank.
struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<f32>>>,
    from: Vec<Receiver<Vec<f32>>>,
}

impl Threads {
    /// The connections of all ranks.
    fn all(ranks: usize) -> Vec<Self> {
        let mut all: Vec<Self> =
            (0..ranks).map(|rank| Self { rank, to: Vec::new(), from: Vec::new() }).collect();
        for from in 0..ranks {
            for to in 0..ranks {
                let (sender, receiver) = channel();
                all[from].to.push(sender);
                all[to].from.push(receiver);
            }
        }
        all
    }
}

impl HostPeers for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error> {
        let gone = |rank: usize| Error::Exchange { reason: format!("rank {rank} is gone") };
        for (rank, floats) in sends {
            self.to[*rank].send(floats.to_vec()).map_err(|_| gone(*rank))?;
        }
        for (rank, floats) in receives {
            let sent = self.from[*rank].recv().map_err(|_| gone(*rank))?;
            floats.copy_from_slice(&sent);
        }
        Ok(())
    }
}

/// Runs `body` for all ranks concurrently.
fn as_ranks<R: Send>(
    ranks: usize,
    body: impl Fn(usize, &Cpu, Box<dyn HostPeers>) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let body = &body;
        let started: Vec<_> = Threads::all(ranks)
            .into_iter()
            .map(|peers| {
                let rank = peers.rank;
                scope.spawn(move || body(rank, &Cpu::new(1).unwrap(), Box::new(peers)))
            })
            .collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn values(len: usize, place: usize) -> Vec<f32> {
    narrow(&random(len, place as u32))
}

/// A rank's slice of all values.
fn slice_of(values: &[f32], partition: &Partition, rank: usize) -> Vec<f32> {
    partition.slice(rank).flat_map(|(_, piece)| values[piece].to_vec()).collect()
}

/// A partition into one bucket, and one into several.
fn partitions(len: usize, ranks: usize) -> [Partition; 2] {
    let finals = [7 * len / 8, len / 2, len / 3, 0];
    [Partition::new(len, ranks, &[]), Partition::new(len, ranks, &finals)]
}

#[test]
fn every_owner_receives_its_slice_of_all_parts() {
    let parts = [2, 1, 1];
    for (len, ranks) in [(3 * NORM_BLOCK + 48, 3), (37 * NORM_BLOCK + 48, 1)]
        .into_iter()
        .chain([2, 3].map(|ranks| (37 * NORM_BLOCK + 48, ranks)))
    {
        for partition in partitions(len, ranks) {
            check_scatter(len, &partition, &parts[..ranks]);
        }
    }
    assert_eq!(partitions(37 * NORM_BLOCK, 3)[1].buckets(), 4);
}

fn check_scatter(len: usize, partition: &Partition, parts: &[usize]) {
    let ranks = partition.ranks();
    let received = as_ranks(ranks, |rank, cpu, mut peers| {
        let scatter = Scatter { partition, parts };
        let own: Vec<_> = scatter
            .rows(rank)
            .map(|row| {
                let mut part = cpu.floats(len).unwrap();
                cpu.write_floats(&values(len, row), 0, &mut part);
                part
            })
            .collect();
        let mut to = cpu.floats(scatter.all_rows() * partition.owned(rank)).unwrap();
        let own: Vec<_> = own.iter().collect();
        for bucket in 0..partition.buckets() {
            cpu.begin_scatter(&mut peers, &scatter, bucket, &own, &mut to).unwrap();
        }
        cpu.finish_scatters(&mut peers).unwrap();
        to.to_vec()
    });
    for (rank, received) in received.iter().enumerate() {
        let rows = received.chunks(partition.owned(rank).max(1));
        for (row, received) in rows.enumerate() {
            let expected = slice_of(&values(len, row), partition, rank);
            assert_eq!(received, expected, "{ranks} {rank}");
        }
    }
}

#[test]
fn what_is_gathered_is_everywhere() {
    // The fourth rank has no piece of the shorter buffer.
    for len in [2 * NORM_BLOCK + 16, 37 * NORM_BLOCK + 16] {
        for partition in [1, 2, 3, 4].into_iter().flat_map(|ranks| partitions(len, ranks)) {
            let expected = values(len, 9);
            let gathered = as_ranks(partition.ranks(), |rank, cpu, mut peers| {
                let mut floats = cpu.floats(len).unwrap();
                for (_, piece) in partition.slice(rank) {
                    cpu.write_floats(&expected[piece.clone()], piece.start, &mut floats);
                }
                cpu.gather_floats(&mut peers, &partition, &mut floats).unwrap();
                floats.to_vec()
            });
            assert!(gathered.iter().all(|gathered| *gathered == expected), "{partition:?}");
        }
    }
}

#[test]
fn sums_keep_their_order() {
    let cpu = Cpu::new(2).unwrap();
    let (mut from, mut to) = (cpu.floats(8).unwrap(), cpu.floats(8).unwrap());
    cpu.write_floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 0, &mut from);
    cpu.copy_floats(&from, 2..5, &mut to, 1);
    cpu.add_floats(&from, 0..2, &mut to, 3);
    assert_eq!(*to, [0.0, 3.0, 4.0, 6.0, 2.0, 0.0, 0.0, 0.0]);
    cpu.add_within(&mut to, 1..3, 5);
    cpu.add_within(&mut to, 6..7, 0);
    assert_eq!(*to, [4.0, 3.0, 4.0, 6.0, 2.0, 3.0, 4.0, 0.0]);
    // In single precision or in another order, the 1 would be lost.
    cpu.write_floats(&[1e20, -1e20, 1.0, 0.0], 0, &mut from);
    cpu.add_in_order(4, &from, &mut to);
    assert_eq!(to[0], 1.0);
}

/// The result of an update by ranks, assembled: norm, parameters and moments.
fn sliced(layout: &Layout, partition: &Partition, settings: AdamW) -> [Vec<f32>; 4] {
    let len = layout.len();
    let Bench { cpu, mut weights, .. } = Bench::new(layout);
    let [mut first, mut second] = [0; 2].map(|_| vec![0.0; len]);
    let (blocks, gradients) = (len.div_ceil(NORM_BLOCK), values(len, 3));
    let (mut sums, mut norm) = (cpu.floats(2 * blocks).unwrap(), cpu.floats(1).unwrap());
    let upload = |rank: usize| {
        let mut floats = cpu.floats(partition.owned(rank)).unwrap();
        cpu.write_floats(&slice_of(&gradients, partition, rank), 0, &mut floats);
        floats
    };
    for rank in 0..partition.ranks() {
        for (place, piece) in partition.slice(rank) {
            let at = 2 * piece.start.div_ceil(NORM_BLOCK);
            cpu.square_sums(place..place + piece.len(), &upload(rank), &mut sums, at);
        }
    }
    cpu.norm_of_sums(blocks, &sums, &mut norm);
    for rank in 0..partition.ranks() {
        let floats = || cpu.floats(partition.owned(rank)).unwrap();
        let (mut moments, mut own) = (Moments { first: floats(), second: floats() }, upload(rank));
        let decayed = layout.decayed();
        for (at, piece) in partition.slice(rank) {
            let range = piece.clone();
            let (weights, moments) = (&mut weights, &mut moments);
            cpu.adamw_piece(settings, &decayed, &norm, range, at, weights, moments, &mut own);
            first[piece.clone()].copy_from_slice(&moments.first[at..at + piece.len()]);
            second[piece.clone()].copy_from_slice(&moments.second[at..at + piece.len()]);
        }
        assert!(own.iter().all(|gradient| *gradient == 0.0));
    }
    [norm.to_vec(), weights.to_vec(), first, second]
}

#[test]
fn slices_of_an_update_give_the_bits_of_the_whole() {
    let mut layout = Layout::new();
    layout.add("matrix", &[90, 51], true);
    layout.add("bias", &[21], false);
    layout.add("last", &[301, 40], true);
    let settings = AdamW {
        learning_rate: 3e-2,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.1,
        decay: Decay::Decoupled,
        clip: 0.25,
        update: 1,
    };
    let len = layout.len();
    let whole = sliced(&layout, &Partition::new(len, 1, &[]), settings);
    for partition in (1..=6).flat_map(|ranks| partitions(len, ranks)) {
        assert_eq!(sliced(&layout, &partition, settings), whole, "{partition:?}");
    }
    let squares: f64 = random(layout.len(), 3).iter().map(|g| g * g).sum();
    let error = f64::from(whole[0][0]) - squares.sqrt();
    assert!(error.abs() < 1e-6 * squares.sqrt(), "{error}");
}
