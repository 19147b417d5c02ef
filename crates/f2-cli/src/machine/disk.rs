use std::path::Path;
use std::process::Command;

/// Free bytes on the disk that holds `folder`, as the system's `df` tells.
///
/// The standard library cannot say, and a system call for one line of `f2 doctor` is not worth
/// unsafe code.
pub(crate) fn free_disk(folder: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let report = String::from_utf8(output.stdout).ok()?;
    let available = report.lines().nth(1)?.split_whitespace().nth(3)?;
    available.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
