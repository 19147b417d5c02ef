//! The owner of a lock, as recorded in the lock's file.

use std::fmt;
use std::path::Path;

use crate::read::read_at_most;
use crate::regular_file;

/// The maximum size of a lock's file, in bytes.
const LONGEST: u64 = 1 << 12;

/// The process that holds a lock, as recorded in the lock's file: `process 4711 on machine`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id; 0 if unknown.
    pub process: u32,
    /// The name of the machine it runs on.
    pub host: String,
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        Self { process: std::process::id(), host: host() }
    }

    pub(crate) fn to_text(&self) -> String {
        format!("{self}\n")
    }

    pub(crate) fn read(lock: &Path) -> Option<Self> {
        let text = String::from_utf8(read_at_most(regular_file(lock).ok()?, LONGEST).ok()?).ok()?;
        let (process, host) =
            text.trim_end_matches(['\r', '\n']).strip_prefix("process ")?.split_once(" on ")?;
        Some(Self { process: process.parse().ok()?, host: host.to_owned() })
    }

    /// Whether it was a process of this machine that has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.host == host() && !is_alive(self.process)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            0 => formatter.write_str("another process"),
            process => write!(formatter, "process {process} on {}", self.host),
        }
    }
}

/// The name of this machine.
#[cfg(unix)]
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of this machine.
#[cfg(not(unix))]
pub(crate) fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    // A process that this one may not signal is alive as well.
    process.is_some_and(|process| {
        rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
    })
}

#[cfg(not(unix))]
fn is_alive(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_lock_name_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let holder = Holder { process: 4711, host: "a host".to_owned() };
        std::fs::write(&path, holder.to_text()).unwrap();
        assert_eq!(Holder::read(&path), Some(holder));
        std::fs::write(&path, "process x").unwrap();
        assert_eq!(Holder::read(&path), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_a_dead_process_of_this_machine_is_gone() {
        let this = Holder::this_process();
        assert!(!this.is_gone());
        let dead = Holder { process: 4_000_000, ..this };
        assert!(dead.is_gone());
        assert!(!Holder { host: "elsewhere".to_owned(), ..dead }.is_gone());
    }
}
