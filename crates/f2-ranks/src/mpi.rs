//! Ranks started by `mpirun` on hosts without GPUs: messages and numbers are sent over MPI.
//!
//! The death of a process is detected by MPI: `mpirun` ends all others and reports which one died.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination as _, Source as _};
use ::mpi::request::{LocalScope, WaitGuard, scope};
use ::mpi::topology::{Communicator as _, SimpleCommunicator};
use ::mpi::{Rank, Threading};

use crate::control::{Control, Link};
use crate::{Error, Transport};

/// The tags that distinguish messages from numbers.
const MESSAGE: i32 = 1;
const NUMBERS: i32 = 2;

/// The most numbers in one message; MPI's counts have 31 bits.
const MOST: usize = 1 << 28;

/// Initialised MPI. Finalised when the last user is dropped if the rank has finished; after a
/// failure it is not, since it would wait for the others, which may wait for this rank's numbers.
struct World {
    universe: ManuallyDrop<Universe>,
    done: AtomicBool,
}

// SAFETY: MPI was initialised with `Threading::Multiple`, so any thread may call it.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    fn communicator(&self) -> SimpleCommunicator {
        self.universe.world()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.done.load(Ordering::SeqCst) {
            // SAFETY: it is dropped only here and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.universe) };
        }
    }
}

/// Initialises MPI and connects this rank to the others. If this rank fails, `end` is called with
/// the reason and must not return: ranks that wait for its numbers cannot be told in any other way.
pub fn rendezvous(end: fn(&Error)) -> Result<(Control, MpiTransport), Error> {
    let refuse = |reason: &str| Error::Launch { reason: reason.to_owned() };
    let begun = ::mpi::initialize_with_threading(Threading::Multiple);
    let (universe, threading) = begun.ok_or_else(|| refuse("MPI was initialised twice"))?;
    if threading < Threading::Multiple {
        return Err(refuse("this MPI library does not support several threads"));
    }
    let world =
        Arc::new(World { universe: ManuallyDrop::new(universe), done: AtomicBool::new(false) });
    let communicator = world.communicator();
    let (rank, size) = (communicator.rank() as usize, communicator.size() as usize);
    let control =
        Control::new(rank, size, Box::new(Messages { world: Arc::clone(&world), rank, end }));
    Ok((control, MpiTransport { world, rank }))
}

struct Messages {
    world: Arc<World>,
    rank: usize,
    end: fn(&Error),
}

impl Link for Messages {
    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Error> {
        self.world.communicator().process_at_rank(to as Rank).send_with_tag(message, MESSAGE);
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, Error> {
        let world = self.world.communicator();
        Ok(world.process_at_rank(from as Rank).receive_vec_with_tag(MESSAGE).0)
    }

    fn fail(&mut self, reason: &str) {
        (self.end)(&Error::Failed { rank: self.rank, reason: reason.to_owned() });
    }

    fn finish(&mut self) {
        self.world.done.store(true, Ordering::SeqCst);
    }
}

/// Carries numbers over MPI.
pub struct MpiTransport {
    world: Arc<World>,
    rank: usize,
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error> {
        let world = self.world.communicator();
        scope(|scope| {
            let mut waits = Vec::new();
            for (from, floats) in receives {
                receive(&world, *from, floats, scope, &mut waits);
            }
            let mut sent = Vec::new();
            for (to, floats) in sends {
                for part in floats.chunks(MOST) {
                    let process = world.process_at_rank(*to as Rank);
                    sent.push(WaitGuard::from(
                        process.immediate_send_with_tag(scope, part, NUMBERS),
                    ));
                }
            }
        });
        Ok(())
    }
}

fn receive<'a, 's>(
    world: &SimpleCommunicator,
    from: usize,
    floats: &'a mut [f32],
    scope: &'s LocalScope<'a>,
    waits: &mut Vec<WaitGuard<'a, [f32], &'s LocalScope<'a>>>,
) {
    for part in floats.chunks_mut(MOST) {
        let process = world.process_at_rank(from as Rank);
        waits.push(process.immediate_receive_into_with_tag(scope, part, NUMBERS).into());
    }
}
