//! Ranks on one host without a launcher: rank 0 starts a process for each of the others.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::{GRACE, POLL, Place, connect, rendezvous};
use crate::launch::CHILD;
use crate::{Address, Control, Error};

/// How long children may continue after rank 0: a little longer than one that is stuck takes to end
/// itself.
const PATIENCE: Duration = GRACE.saturating_add(Duration::from_secs(5));

/// The processes of ranks 1 and up, children of rank 0. On drop they are waited for, and killed if
/// they do not end by themselves.
#[derive(Debug)]
pub struct Children(Vec<(usize, Child)>);

impl Children {
    /// Starts `size` - 1 ranks and connects to them. To each `command` it adds the variables that
    /// [`Launch`](crate::Launch) reads. If a rank is lost later and rank 0 does not end by itself,
    /// `end` is called with the reason; it must not return.
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
                // The others would wait for a rank that never connects.
                children.kill();
                Error::Start { rank, reason: error.to_string() }
            })?;
            children.0.push((rank, child));
        }
        let streams = rendezvous::accept_all(&listener, &place, &mut || children.check());
        let streams = streams.inspect_err(|_| children.kill())?;
        Ok((children, connect(&place, (1..).zip(streams).collect(), end)?))
    }

    /// Fails if a child has ended.
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

    /// Kills the children that have not ended.
    fn kill(&mut self) {
        for (_, child) in &mut self.0 {
            // Both fail only if there is nothing left to do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let began = Instant::now();
        while !self.are_over() && began.elapsed() < PATIENCE {
            thread::sleep(POLL);
        }
        self.kill();
    }
}

fn as_rank<'a>(command: &'a mut Command, rank: usize, place: &Place) -> &'a mut Command {
    command
        .envs(CHILD.into_iter().zip([rank, place.size].map(|number| number.to_string())))
        .env("MASTER_ADDR", &place.address.host)
        .env("MASTER_PORT", place.address.port.to_string())
        // It would move the port, since torchrun listens on it.
        .env_remove("TORCHELASTIC_USE_AGENT_STORE")
}
