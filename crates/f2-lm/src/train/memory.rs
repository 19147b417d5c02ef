use std::fs;

use f2_engine::Device;

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
    fn reads_the_kernels_table() {
        let text = "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(meminfo(text), Some(8192 * 1024));
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }
}
