//! Ranks of one host without a launcher: rank 0 starts a process for each of the others.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::{GLANCE, GRACE, Place, connect, rendezvous};
use crate::launch::CHILD;
use crate::{Address, Control, Error};

/// How long children may go on after rank 0: as long as one that is stuck waits before it ends itself, and
/// a little more.
const PATIENCE: Duration = GRACE.saturating_add(Duration::from_secs(5));

/// The processes of ranks 1 and up, whose parent is rank 0. Dropped, they are waited for; what does not end by itself
/// is killed.
#[derive(Debug)]
pub struct Children(Vec<(usize, Child)>);

impl Children {
    /// Starts `size` - 1 ranks, each by a `command` to which the variables are added that
    /// [`Launch`](crate::Launch) reads there, and meets them. Where one is lost later and rank 0 does not end by
    /// itself, `end` is called with the reason; it must not return.
    pub fn start(
        size: usize,
        limit: Duration,
        command: &dyn Fn(usize) -> Command,
        end: fn(&Error),
    ) -> Result<(Self, Control), Error> {
        let mut address = Address { host: "127.0.0.1".to_owned(), port: 0 };
        let listener = rendezvous::listen(&address)?;
        let port = listener.local_addr().map(|own| own.port());
        address.port = port.map_err(|error| rendezvous::not_listening(&address, &error))?;
        let place = Place { rank: 0, size, address, limit };
        let mut children = Self(Vec::new());
        for rank in 1..size {
            let child = as_rank(&mut command(rank), rank, &place).spawn();
            let child = child.map_err(|error| {
                // Those that run would wait for a rank that never comes.
                children.kill();
                Error::Start { rank, reason: error.to_string() }
            })?;
            children.0.push((rank, child));
        }
        let guests = rendezvous::welcome(&listener, &place, &mut || children.check());
        let guests = guests.inspect_err(|_| children.kill())?;
        Ok((children, connect(&place, (1..).zip(guests).collect(), end)?))
    }

    /// Fails where one has ended.
    fn check(&mut self) -> Result<(), Error> {
        for (rank, child) in &mut self.0 {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(Error::Ended { rank: *rank, status: status.to_string() });
            }
        }
        Ok(())
    }

    fn are_over(&mut self) -> bool {
        self.0.iter_mut().all(|(_, child)| !matches!(child.try_wait(), Ok(None)))
    }

    /// Ends those that have not ended.
    fn kill(&mut self) {
        for (_, child) in &mut self.0 {
            // Both fail where nothing is left to do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let began = Instant::now();
        while !self.are_over() && began.elapsed() < PATIENCE {
            thread::sleep(GLANCE);
        }
        self.kill();
    }
}

fn as_rank<'a>(command: &'a mut Command, rank: usize, place: &Place) -> &'a mut Command {
    command
        .envs(CHILD.into_iter().zip([rank, place.size].map(|number| number.to_string())))
        .env("MASTER_ADDR", &place.address.host)
        .env("MASTER_PORT", place.address.port.to_string())
        // It moves the port, since a launcher listens there.
        .env_remove("TORCHELASTIC_USE_AGENT_STORE")
}
