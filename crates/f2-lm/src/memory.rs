//! Whether the available memory suffices, checked before any is allocated.

use std::{fmt, fs};

use f2_engine::Device;
use sysinfo::{MemoryRefreshKind, System};

use crate::Error;

/// The purpose memory is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Holding a model's parameters.
    Loading,
    /// Training a model.
    Training,
    /// Generating text.
    Generation,
    /// Taking a model's perplexity.
    Perplexity,
    /// Reading hidden states.
    Embedding,
}

impl fmt::Display for Purpose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loading => "holding the model",
            Self::Training => "training",
            Self::Generation => "generation",
            Self::Perplexity => "taking perplexity",
            Self::Embedding => "reading hidden states",
        })
    }
}

/// Fails if the device's available memory is known and too small.
pub fn check_memory<D: Device>(device: &D, purpose: Purpose, needed: u64) -> Result<(), Error> {
    match available_memory(device) {
        Some(available) if available < needed => {
            Err(Error::TooLittleMemory { purpose, needed, available })
        }
        _ => Ok(()),
    }
}

/// Bytes of a buffer with these extents; saturates on overflow.
pub(crate) fn bytes(extents: &[usize]) -> u64 {
    extents.iter().fold(1, |bytes: u64, &extent| bytes.saturating_mul(extent as u64))
}

/// Bytes available now in the memory a device uses: its own, or the host's. `None` if it is not
/// known.
pub fn available_memory<D: Device>(device: &D) -> Option<u64> {
    device.available_memory().or_else(|| host_memory().map(|memory| memory.available))
}

/// The memory of this machine, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct HostMemory {
    /// All of it.
    pub total: u64,
    /// The memory available without swapping, or less if a control group limits the process.
    pub available: u64,
}

/// The memory of this machine; `None` if the system does not report it.
pub fn host_memory() -> Option<HostMemory> {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let (total, available) = (system.total_memory(), system.available_memory());
    let group = group_limit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current");
    let available = group.map_or(available, |left| left.min(available));
    (total > 0).then_some(HostMemory { total, available })
}

/// The memory a control group has left; `None` if its limit is `max`.
fn group_limit(limit: &str, used: &str) -> Option<u64> {
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    Some(number(limit)?.saturating_sub(number(used)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_exceed_any_memory() {
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
    fn the_host_has_more_memory_than_it_gives() {
        let memory = host_memory().expect("this system says");
        assert!(memory.available > 0 && memory.available <= memory.total, "{memory:?}");
    }
}
