//! `f2 train` with several ranks, each a process: started by this one for the GPUs of this host, or
//! by a launcher.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use f2_engine::Device;
use f2_lm::train::Ranks;
use f2_ranks::{Children, Control, Launch, Launcher, Place, Transport, rendezvous};

use super::{Role, Train, Trained};
use crate::failure::{Failure, Kind};
use crate::interrupt::end_now;
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::gpus::gpus_are_shared;

/// This rank's connections to the other ranks.
pub(super) struct Hosts {
    control: Control,
    /// Carries the data of ranks that compute on CPUs.
    transport: Option<Box<dyn Transport>>,
}

/// A rank of a run, on whichever device. `hosts` is taken once the device is ready; until then the
/// caller can tell the other ranks of a failure.
struct Rank<'a> {
    train: &'a Train,
    hosts: &'a mut Option<Hosts>,
}

impl DeviceTask for Rank<'_> {
    type Output = Trained;

    fn run<D: Device>(self, device: D) -> Result<Trained, Failure> {
        let Self { train, hosts } = self;
        let join = |Hosts { control, transport }| Ranks::join(&device, control, transport);
        let mut ranks = hosts.take().map(join).transpose()?;
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
        self.as_rank(self.device, None)
    }

    /// Trains on as many GPUs as requested, or as the rank that this process was started as.
    pub(super) fn among_ranks(&self) -> Result<Trained, Failure> {
        let launch = Launch::from_environment().map_err(f2_lm::Error::from)?;
        match (launch, self.gpus.asked()) {
            (Some(launch), _) if launch.launcher == Launcher::RankZero => self.as_child(&launch),
            (Some(_), Some(_)) => Err(Failure::usage(
                "`--gpus` starts the ranks of this host, and a launcher has started some already",
            )
            .advise("leave `--gpus` out: every process takes the GPU of its local rank")),
            (Some(launch), None) => self.as_process(&launch),
            (None, Some(_)) => self.as_parent(),
            (None, None) => self.alone(),
        }
    }

    /// Trains on the first GPU, and on each of the others in a process with the same flags. Threads
    /// could deadlock: allocating memory or loading a kernel waits for the kernels on all GPUs of
    /// the process, and those of an exchange wait for each other.
    fn as_parent(&self) -> Result<Trained, Failure> {
        let devices = self.device.each(self.gpus)?;
        if devices.len() == 1 {
            return self.as_rank(devices[0], None);
        }
        let limit = Duration::from_secs(self.rank_timeout);
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(Kind::Device, format!("cannot find the program's own file: {error}"))
        })?;
        let started =
            Children::start(devices.len(), limit, &|rank| same_command(&program, rank), end);
        let (_children, control) = started.map_err(f2_lm::Error::from)?;
        self.as_rank(devices[0], Some(Hosts { control, transport: None }))
    }

    /// Trains as a child of rank 0, which receives its failures and reports them.
    fn as_child(&self, launch: &Launch) -> Result<Trained, Failure> {
        let hosts = self.over_tcp(launch, end_silently)?;
        let trained = self.as_rank(self.device.of_child(launch.rank), Some(hosts));
        Ok(Trained { role: Role::Child, ..trained.map_err(Failure::reported)? })
    }

    fn as_process(&self, launch: &Launch) -> Result<Trained, Failure> {
        let device = self.device.of_rank(launch.local_rank);
        let hosts = if device.is_gpu() { self.over_tcp(launch, end) } else { over_mpi(launch) };
        hosts.and_then(|hosts| self.as_rank(device, Some(hosts))).map_err(|failure| {
            match launch.rank {
                0 => failure,
                rank => failure.before(&format!("rank {rank}: ")),
            }
        })
    }

    fn as_rank(&self, device: DeviceChoice, mut hosts: Option<Hosts>) -> Result<Trained, Failure> {
        let trained = device.run(Rank { train: self, hosts: &mut hosts });
        trained.inspect_err(|failure| {
            if let Some(hosts) = &mut hosts {
                hosts.control.fail(failure.message());
            }
        })
    }

    fn over_tcp(&self, launch: &Launch, end: fn(&f2_ranks::Error)) -> Result<Hosts, Failure> {
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

/// This program with the arguments of this process. Ranks that share a GPU pass for separate hosts,
/// because NCCL refuses two ranks of one host on one GPU.
fn same_command(program: &Path, rank: usize) -> Command {
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).stdin(Stdio::null()).stdout(Stdio::null());
    if gpus_are_shared() {
        command.env("NCCL_HOSTID", format!("rank-{rank}"));
    }
    command
}

/// Reports the error and ends the process: a rank that waits for a lost one cannot end by itself.
fn end(error: &f2_ranks::Error) {
    Failure::from(f2_lm::Error::from(error.clone())).report();
    end_now(Kind::Device);
}

/// Ends the process without a report: its parent makes one.
fn end_silently(_: &f2_ranks::Error) {
    end_now(Kind::Device);
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
