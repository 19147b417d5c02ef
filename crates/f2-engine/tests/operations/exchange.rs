//! The exchange between ranks, and the optimiser over slices: threads of this process are the ranks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use f2_engine::prelude::*;
use f2_engine::{
    AdamW, Cpu, Decay, Error, HostPeers, Layout, Moments, NORM_BLOCK, Scatter, slices,
};

use super::{Bench, narrow, random};

/// A rank that is a thread: a channel from each rank and to each.
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

/// Runs `body` as every rank at once.
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

#[test]
fn every_owner_receives_its_slice_of_all_parts() {
    let (len, parts) = (3 * NORM_BLOCK + 48, [2, 1, 1]);
    for ranks in [1, 2, 3] {
        let (slices, parts) = (slices(len, ranks), &parts[..ranks]);
        let received = as_ranks(ranks, |rank, cpu, mut peers| {
            let scatter = Scatter { slices: &slices, parts };
            let own: Vec<_> = scatter
                .rows(rank)
                .map(|row| {
                    let mut part = cpu.floats(len).unwrap();
                    cpu.write_floats(&values(len, row), 0, &mut part);
                    part
                })
                .collect();
            let mut to = cpu.floats(scatter.all_rows() * slices[rank].len()).unwrap();
            let own: Vec<_> = own.iter().collect();
            cpu.scatter(&mut peers, &scatter, &own, &mut to).unwrap();
            to.to_vec()
        });
        for (rank, received) in received.iter().enumerate() {
            let rows = received.chunks(slices[rank].len().max(1));
            for (row, received) in rows.enumerate() {
                assert_eq!(received, &values(len, row)[slices[rank].clone()], "{ranks} {rank}");
            }
        }
    }
}

#[test]
fn what_is_gathered_is_everywhere() {
    let len = 2 * NORM_BLOCK + 16;
    // The fourth rank has nothing.
    for ranks in [1, 2, 3, 4] {
        let (slices, expected) = (slices(len, ranks), values(len, 9));
        let gathered = as_ranks(ranks, |rank, cpu, mut peers| {
            let mut floats = cpu.floats(len).unwrap();
            let slice = slices[rank].clone();
            cpu.write_floats(&expected[slice.clone()], slice.start, &mut floats);
            cpu.gather_floats(&mut peers, &slices, &mut floats).unwrap();
            floats.to_vec()
        });
        assert!(gathered.iter().all(|gathered| *gathered == expected), "{ranks} ranks");
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
    // In single precision, or in another order, the one would be lost.
    cpu.write_floats(&[1e20, -1e20, 1.0, 0.0], 0, &mut from);
    cpu.add_in_order(4, &from, &mut to);
    assert_eq!(to[0], 1.0);
}

/// The update of `ranks` slices, put together: norm, parameters and moments.
fn sliced(layout: &Layout, ranks: usize, settings: AdamW) -> [Vec<f32>; 4] {
    let len = layout.len();
    let Bench { cpu, mut weights, .. } = Bench::new(layout);
    let mut result = [vec![], vec![], vec![], vec![]];
    let (blocks, gradients) = (len.div_ceil(NORM_BLOCK), values(len, 3));
    let (mut sums, mut norm) = (cpu.floats(2 * blocks).unwrap(), cpu.floats(1).unwrap());
    let slices = slices(len, ranks);
    let upload = |slice: &std::ops::Range<usize>| {
        let mut floats = cpu.floats(slice.len()).unwrap();
        cpu.write_floats(&gradients[slice.clone()], 0, &mut floats);
        floats
    };
    for slice in &slices {
        let at = 2 * slice.start.div_ceil(NORM_BLOCK);
        cpu.square_sums(slice.len(), &upload(slice), &mut sums, at);
    }
    cpu.norm_of_sums(blocks, &sums, &mut norm);
    for slice in &slices {
        let floats = || cpu.floats(slice.len()).unwrap();
        let (mut moments, mut own) = (Moments { first: floats(), second: floats() }, upload(slice));
        let decayed = layout.decayed();
        let slice = slice.clone();
        cpu.adamw_slice(settings, &decayed, &norm, slice, &mut weights, &mut moments, &mut own);
        assert!(own.iter().all(|gradient| *gradient == 0.0));
        result[2].extend_from_slice(&moments.first);
        result[3].extend_from_slice(&moments.second);
    }
    result[0] = norm.to_vec();
    result[1] = weights.to_vec();
    result
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
    let whole = sliced(&layout, 1, settings);
    for ranks in 2..=6 {
        assert_eq!(sliced(&layout, ranks, settings), whole, "{ranks} ranks");
    }
    let squares: f64 = random(layout.len(), 3).iter().map(|g| g * g).sum();
    let error = f64::from(whole[0][0]) - squares.sqrt();
    assert!(error.abs() < 1e-6 * squares.sqrt(), "{error}");
}
