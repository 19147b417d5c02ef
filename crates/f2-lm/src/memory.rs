//! Whether the memory that is there will do, told before it is asked for.

use std::{fmt, fs};

use f2_engine::Device;

use crate::Error;

/// What memory is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Holding a model's parameters.
    Loading,
    /// Training a model.
    Training,
    /// Letting a model write.
    Generation,
    /// Taking a model's perplexity.
    Perplexity,
}

impl fmt::Display for Purpose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loading => "holding the model",
            Self::Training => "training",
            Self::Generation => "generation",
            Self::Perplexity => "taking perplexity",
        })
    }
}

/// Refuses what the device's memory cannot hold, where it is known.
pub fn check_memory<D: Device>(device: &D, purpose: Purpose, needed: u64) -> Result<(), Error> {
    match available_memory(device) {
        Some(available) if available < needed => {
            Err(Error::TooLittleMemory { purpose, needed, available })
        }
        _ => Ok(()),
    }
}

/// Bytes of a buffer with these extents; all there could be where they are beyond counting.
pub(crate) fn bytes(extents: &[usize]) -> u64 {
    extents.iter().fold(1, |bytes: u64, &extent| bytes.saturating_mul(extent as u64))
}

/// Bytes of the memory a device works in that could be had now: its own, or the host's. Nothing
/// where it is not known.
pub fn available_memory<D: Device>(device: &D) -> Option<u64> {
    device.available_memory().or_else(host_memory)
}

/// What could be had without swapping: what the system says, or less where the process is confined
/// to a group with a limit of its own.
fn host_memory() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text));
    let group = group_limit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current");
    [system, group].into_iter().flatten().min()
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// What a control group has left. Reads nothing where the limit is the word `max`.
fn group_limit(limit: &str, used: &str) -> Option<u64> {
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    Some(number(limit)?.saturating_sub(number(used)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_counting_is_more_than_there_is() {
        assert_eq!(bytes(&[3, 5, 4]), 60);
        assert_eq!(bytes(&[usize::MAX, 2]), u64::MAX);
        let cpu = f2_engine::Cpu::new(1).unwrap();
        assert!(check_memory(&cpu, Purpose::Generation, 1).is_ok());
        if available_memory(&cpu).is_some() {
            let refused = check_memory(&cpu, Purpose::Generation, u64::MAX).unwrap_err();
            assert!(refused.to_string().starts_with("generation needs 18446744073.71 GB"));
        }
    }

    #[test]
    fn reads_the_kernels_table() {
        let text = "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(meminfo(text), Some(8192 * 1024));
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }
}
