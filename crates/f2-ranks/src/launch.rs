//! How this process was started, from the variables that launchers set.

use std::fmt;

use crate::Error;

/// The port rank 0 listens on if no variable sets one.
const PORT: u16 = 29_511;
/// The first port and the number of ports used for jobs with a number.
const JOB_PORTS: (u16, u64) = (20_000, 10_000);

/// The launcher that started the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Rank 0 itself; the others are its [`Children`](crate::Children).
    RankZero,
    /// `torchrun`, or anything else that sets `RANK` and `WORLD_SIZE`.
    Torchrun,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// `mpirun` of MPICH, Intel MPI and others with PMI.
    Pmi,
    /// `srun` of Slurm.
    Slurm,
}

/// Where rank 0 listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The host's name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// The place of this process among the ranks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The launcher that started it.
    pub launcher: Launcher,
    /// The number of this rank, from 0.
    pub rank: usize,
    /// How many ranks there are; at least two.
    pub size: usize,
    /// The number of this rank on its host, from 0.
    pub local_rank: usize,
    /// Where rank 0 listens, if known from the environment.
    pub address: Option<Address>,
}

/// The names of a launcher's variables: rank, number of ranks, rank on the host, ranks on the host.
struct Names {
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// The variables of a rank started by rank 0: its number, and the number of ranks.
pub(crate) const CHILD: [&str; 2] = ["F2_RANK", "F2_RANKS"];

/// The innermost launcher first: `torchrun` and `mpirun` may be started by `srun`.
const LAUNCHERS: [Names; 5] = [
    Names {
        launcher: Launcher::RankZero,
        rank: CHILD[0],
        size: CHILD[1],
        local_rank: CHILD[0],
        local_size: CHILD[1],
    },
    Names {
        launcher: Launcher::Torchrun,
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        local_size: "LOCAL_WORLD_SIZE",
    },
    Names {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Names {
        launcher: Launcher::Pmi,
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
    // Not SLURM_NTASKS: in the shell of an allocation it is the number of tasks that could be
    // started, and the shell is not one of them.
    Names {
        launcher: Launcher::Slurm,
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_STEP_TASKS_PER_NODE",
    },
];

impl Launch {
    /// How this process was started; `None` if it is the only one.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    /// [`from_environment`](Self::from_environment) with any source of variables.
    pub fn from_variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        for names in &LAUNCHERS {
            if let Some(launch) = read(names, get)? {
                return Ok(Some(launch));
            }
        }
        Ok(None)
    }
}

fn read(names: &Names, get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Launch>, Error> {
    let Names { launcher, rank: rank_name, size: size_name, .. } = *names;
    let (rank, size) = (number(rank_name, get)?, number(size_name, get)?);
    let (rank, size) = match (rank, size) {
        // The batch script of a Slurm job has a rank but is not a step.
        (_, None) if launcher == Launcher::Slurm => return Ok(None),
        (None, None | Some(1)) | (Some(0), Some(1)) => return Ok(None),
        (Some(rank), Some(size)) if rank < size => (rank, size),
        (Some(rank), Some(size)) => {
            return refuse(format!("{rank_name} is {rank}, but {size_name} is {size}"));
        }
        (Some(_), None) => return refuse(format!("{rank_name} is set, and {size_name} is not")),
        (None, Some(_)) => return refuse(format!("{size_name} is set, and {rank_name} is not")),
    };
    let local_rank = match number(names.local_rank, get)? {
        Some(local) if local > rank => {
            let name = names.local_rank;
            return refuse(format!("{name} is {local}, but {rank_name} is {rank}"));
        }
        local => local,
    };
    // Slurm writes `2(x3)` for two tasks on each of three hosts.
    let alone = get(names.local_size).is_some_and(|count| count == size.to_string());
    let address = address(launcher, alone, get)?;
    Ok(Some(Launch { launcher, rank, size, local_rank: local_rank.unwrap_or(0), address }))
}

fn number(name: &str, get: &dyn Fn(&str) -> Option<String>) -> Result<Option<usize>, Error> {
    let Some(text) = get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => refuse(format!("{name} is {text:?}, which is no number")),
    }
}

fn refuse<T>(reason: String) -> Result<T, Error> {
    Err(Error::Launch { reason })
}

/// Where rank 0 listens: at `MASTER_ADDR`; without it on this host if all ranks are on it, else on
/// the first host of a Slurm step.
fn address(
    launcher: Launcher,
    alone: bool,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Address>, Error> {
    let port = match number("MASTER_PORT", get)? {
        Some(port) => u16::try_from(port)
            .or_else(|_| refuse(format!("MASTER_PORT is {port}; ports end at 65535")))?,
        None => job_port(get),
    };
    // Then torchrun itself listens on that port.
    let taken = get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|used| used == "True");
    let port = if taken { port.wrapping_add(1).max(1024) } else { port };
    let first = || get("SLURM_STEP_NODELIST").and_then(|hosts| first_host(&hosts));
    let host = match get("MASTER_ADDR").filter(|host| !host.is_empty()) {
        Some(host) => Some(host),
        None if alone => Some("127.0.0.1".to_owned()),
        None if launcher == Launcher::Slurm => first(),
        None => None,
    };
    Ok(host.map(|host| Address { host, port }))
}

/// A port derived from the job's number, so that two jobs on one host do not collide.
fn job_port(get: &dyn Fn(&str) -> Option<String>) -> u16 {
    let job = ["SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"];
    let Some(job) = job.into_iter().find_map(get) else { return PORT };
    let hash = |hash: u64, byte: u8| hash.wrapping_mul(31).wrapping_add(u64::from(byte));
    JOB_PORTS.0 + (job.bytes().fold(0, hash) % JOB_PORTS.1) as u16
}

/// The first of Slurm's list of hosts, such as `gpu[07-09,12],login` or `gpu3`.
fn first_host(hosts: &str) -> Option<String> {
    let end = hosts.find([',', '[']).unwrap_or(hosts.len());
    let (name, rest) = hosts.split_at(end);
    let number = rest.strip_prefix('[').and_then(|list| list.split([',', '-', ']']).next());
    let host = format!("{name}{}", number.unwrap_or_default());
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Result<Option<Launch>, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Launch::from_variables(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn refused(variables: &[(&str, &str)]) -> String {
        launch(variables).unwrap_err().to_string()
    }

    #[test]
    fn torchrun() {
        let mut variables = vec![
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "gpu1"),
            ("MASTER_PORT", "29500"),
        ];
        let expected = Launch {
            launcher: Launcher::Torchrun,
            rank: 5,
            size: 8,
            local_rank: 1,
            address: Some(Address { host: "gpu1".to_owned(), port: 29_500 }),
        };
        assert_eq!(launch(&variables).unwrap(), Some(expected));
        variables.push(("TORCHELASTIC_USE_AGENT_STORE", "True"));
        assert_eq!(launch(&variables).unwrap().unwrap().address.unwrap().port, 29_501);
    }

    #[test]
    fn open_mpi_and_pmi_on_one_host() {
        let ompi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let found = launch(&ompi).unwrap().unwrap();
        assert_eq!((found.launcher, found.rank, found.size), (Launcher::OpenMpi, 1, 2));
        assert_eq!(found.address.unwrap().host, "127.0.0.1");
        // On several hosts nothing tells where rank 0 is.
        assert_eq!(launch(&ompi[..3]).unwrap().unwrap().address, None);
        let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "3"), ("MPI_LOCALRANKID", "0")];
        assert_eq!(launch(&pmi).unwrap().unwrap().launcher, Launcher::Pmi);
    }

    #[test]
    fn slurm_finds_the_first_host() {
        let step = [
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x2)"),
            ("SLURM_STEP_NODELIST", "gpu[07-08]"),
            ("SLURM_JOB_ID", "4711"),
        ];
        let found = launch(&step).unwrap().unwrap();
        assert_eq!((found.rank, found.local_rank), (3, 1));
        assert_eq!(found.address.as_ref().unwrap().host, "gpu07");
        let mut other = step;
        other[5].1 = "4712";
        assert_ne!(launch(&other).unwrap().unwrap().address, found.address);
        for (list, first) in
            [("a", "a"), ("a,b", "a"), ("n[3,7]x", "n3"), ("n-1-[09-12]", "n-1-09")]
        {
            assert_eq!(first_host(list).as_deref(), Some(first));
        }
    }

    /// A shell in an allocation, a batch script, a container with variables of its own.
    #[test]
    fn a_process_that_is_alone_has_no_ranks() {
        for alone in [
            &[][..],
            &[("SLURM_NTASKS", "4")],
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")],
            &[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "8")],
            &[("WORLD_SIZE", "1")],
            &[("WORLD_SIZE", "1"), ("RANK", "0"), ("MASTER_ADDR", "x")],
            &[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")],
        ] {
            assert_eq!(launch(alone).unwrap(), None, "{alone:?}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        let refuse = |variables: &[(&str, &str)], words: &str| {
            assert_eq!(refused(variables), words);
        };
        refuse(&[("RANK", "4"), ("WORLD_SIZE", "4")], "RANK is 4, but WORLD_SIZE is 4");
        refuse(&[("RANK", "1")], "RANK is set, and WORLD_SIZE is not");
        refuse(&[("WORLD_SIZE", "2")], "WORLD_SIZE is set, and RANK is not");
        refuse(&[("RANK", "one"), ("WORLD_SIZE", "2")], "RANK is \"one\", which is no number");
        let two = [("RANK", "0"), ("WORLD_SIZE", "2")];
        let with = |name, value| [two[0], two[1], (name, value)];
        refuse(&with("LOCAL_RANK", "1"), "LOCAL_RANK is 1, but RANK is 0");
        refuse(&with("MASTER_PORT", "70000"), "MASTER_PORT is 70000; ports end at 65535");
        // No rank can be one of zero.
        refuse(&[("RANK", "0"), ("WORLD_SIZE", "0")], "RANK is 0, but WORLD_SIZE is 0");
    }
}
