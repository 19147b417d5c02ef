//! `f2 train` by several ranks: a thread for each GPU of this host, or processes that a launcher started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;

use f2_engine::Device;
use f2_lm::train::Ranks;
use f2_ranks::{Control, Launch, Launcher, Place, Transport, rendezvous, threads};

use super::{Train, Trained};
use crate::failure::{Failure, Kind};
use crate::verbs::device::{DeviceChoice, DeviceTask};

/// How long ranks of this process may continue after one of them failed.
const GRACE: Duration = Duration::from_secs(15);

/// This rank's connection to the hosts of the others.
pub(super) struct Hosts {
    control: Control,
    /// Carries the numbers of CPUs.
    transport: Option<Box<dyn Transport>>,
}

/// A rank of a run, on whichever device.
struct Rank<'a> {
    train: &'a Train,
    hosts: Option<Hosts>,
}

impl DeviceTask for Rank<'_> {
    type Output = Trained;

    fn run<D: Device>(self, device: D) -> Result<Trained, Failure> {
        let Self { train, hosts } = self;
        let join = |Hosts { control, transport }| Ranks::join(&device, control, transport);
        let mut ranks = hosts.map(join).transpose()?;
        let prepared = match &train.resume {
            Some(path) => train.resumed(path)?.prepare_among(&mut ranks, &device),
            None => train.new_run()?.prepare_among(&mut ranks, &device, train.device.threads()),
        };
        let prepared = prepared.inspect_err(|error| {
            ranks.iter_mut().for_each(|ranks| ranks.tell(error));
        })?;
        train.train(device, ranks, prepared)
    }
}

impl Train {
    /// Trains in this process alone.
    pub(super) fn alone(&self) -> Result<Trained, Failure> {
        self.device.run(Rank { train: self, hosts: None })
    }

    /// Trains on as many GPUs as were asked for, or as the rank a launcher made this process.
    pub(super) fn among_ranks(&self) -> Result<Trained, Failure> {
        let launch = Launch::from_environment().map_err(f2_lm::Error::from)?;
        match (launch, self.gpus.asked()) {
            (Some(_), Some(_)) => Err(Failure::usage(
                "`--gpus` starts the ranks of this host, and a launcher has started some already",
            )
            .advise("leave `--gpus` out: every process takes the GPU of its number on the host")),
            (Some(launch), None) => self.as_process(&launch),
            (None, Some(_)) => self.on_threads(),
            (None, None) => self.alone(),
        }
    }

    /// A thread to each GPU.
    fn on_threads(&self) -> Result<Trained, Failure> {
        let devices = self.device.each(self.gpus)?;
        if devices.len() == 1 {
            return devices[0].run(Rank { train: self, hosts: None });
        }
        thread::scope(|scope| {
            let (sender, results) = channel();
            let ranks = devices.iter().zip(threads(devices.len()));
            // Where one cannot be started those before it fail for the lack of it.
            let started = { ranks }.try_for_each(|(device, (control, _))| {
                let sender = sender.clone();
                let hosts = Some(Hosts { control, transport: None });
                let work = move || drop(sender.send(self.on_thread(device, hosts)));
                Builder::new().spawn_scoped(scope, work).map(drop)
            });
            drop(sender);
            if let Err(error) = started {
                return Err(ended_by(Failure::without_thread("for each GPU", &error), &results));
            }
            let mut first = None;
            while let Ok(result) = results.recv() {
                match result {
                    Ok(trained) if trained.leads => first = Some(trained),
                    Ok(_) => {}
                    Err(failure) => return Err(ended_by(failure, &results)),
                }
            }
            Ok(first.expect("one of the ranks leads"))
        })
    }

    /// Trains as one rank. A panic ends the others as a failure does: they would wait for this rank.
    fn on_thread(&self, device: &DeviceChoice, hosts: Option<Hosts>) -> Result<Trained, Failure> {
        let trained = catch_unwind(AssertUnwindSafe(|| device.run(Rank { train: self, hosts })));
        trained.unwrap_or_else(|_| Err(Failure::new(Kind::Device, "the thread of a rank panicked")))
    }

    fn as_process(&self, launch: &Launch) -> Result<Trained, Failure> {
        let device = self.device.of_rank(launch.local_rank);
        let gpu = device.is_gpu();
        let named = |failure: Failure| match launch.rank {
            0 => failure,
            rank => failure.before(&format!("rank {rank}: ")),
        };
        let hosts =
            Some(if gpu { self.over_tcp(launch) } else { over_mpi(launch) }.map_err(named)?);
        device.run(Rank { train: self, hosts }).map_err(named)
    }

    fn over_tcp(&self, launch: &Launch) -> Result<Hosts, Failure> {
        let Launch { rank, size, ref address, .. } = *launch;
        let Some(address) = address.clone() else {
            return Err(Failure::usage("nothing says where the ranks meet")
                .advise("set MASTER_ADDR to the host of rank 0, and MASTER_PORT to a free port"));
        };
        let place = Place { rank, size, address, limit: Duration::from_secs(self.rank_timeout) };
        let control = rendezvous(&place, end).map_err(f2_lm::Error::from)?;
        Ok(Hosts { control, transport: None })
    }
}

/// The failure of one rank, once all others have ended. Those that wait for numbers that never come
/// end with the process.
fn ended_by(failure: Failure, others: &Receiver<Result<Trained, Failure>>) -> Failure {
    loop {
        match others.recv_timeout(GRACE) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return failure,
            Err(RecvTimeoutError::Timeout) => {
                failure.report();
                std::process::exit(Kind::Device as i32);
            }
        }
    }
}

/// Ends a process whose rank cannot end by itself: another was lost while it waits for its numbers.
fn end(error: &f2_ranks::Error) {
    Failure::from(f2_lm::Error::from(error.clone())).report();
    std::process::exit(Kind::Device as i32);
}

#[cfg(feature = "mpi")]
fn over_mpi(launch: &Launch) -> Result<Hosts, Failure> {
    if launch.launcher == Launcher::Torchrun {
        return Err(without_mpirun());
    }
    let (control, transport) = f2_ranks::mpi::rendezvous(end).map_err(f2_lm::Error::from)?;
    Ok(Hosts { control, transport: Some(Box::new(transport)) })
}

#[cfg(not(feature = "mpi"))]
fn over_mpi(launch: &Launch) -> Result<Hosts, Failure> {
    if launch.launcher == Launcher::Torchrun {
        return Err(without_mpirun());
    }
    Err(Failure::usage(
        "ranks on CPUs exchange their numbers by MPI, which this program was built without",
    )
    .advise("build it with `--features mpi`, or train on GPUs"))
}

fn without_mpirun() -> Failure {
    Failure::usage(
        "ranks on CPUs exchange their numbers by MPI, and `mpirun` did not start this one",
    )
    .advise("start a program built with `--features mpi` by `mpirun`, or train on GPUs")
}
