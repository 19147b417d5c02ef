/// Memory of the machine and how much of it is free, in bytes, where the system tells.
pub(crate) fn total_and_available_memory() -> Option<(u64, u64)> {
    let report = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some((kibibytes(&report, "MemTotal:")? << 10, kibibytes(&report, "MemAvailable:")? << 10))
}

fn kibibytes(report: &str, name: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_reports() {
        let report = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   20000 kB\n";
        assert_eq!(kibibytes(report, "MemTotal:"), Some(24_576_000));
        assert_eq!(kibibytes(report, "MemAvailable:"), Some(20_000));
        assert_eq!(kibibytes(report, "Swap:"), None);
    }
}
