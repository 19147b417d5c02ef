//! Free space on the disk.

use std::path::Path;

/// Free bytes, for this user, on the disk that holds `folder`; `None` if it is unknown.
#[cfg(unix)]
pub(crate) fn free_disk(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}

/// Free bytes, for this user, on the disk that holds `folder`; `None` if it is unknown.
#[cfg(not(unix))]
pub(crate) fn free_disk(folder: &Path) -> Option<u64> {
    let folder = std::path::absolute(folder).ok()?;
    let disks = sysinfo::Disks::new_with_refreshed_list();
    // Disks may be mounted inside one another: the innermost one counts.
    let holding = disks.iter().filter(|disk| folder.starts_with(disk.mount_point()));
    let nearest = holding.max_by_key(|disk| disk.mount_point().as_os_str().len());
    nearest.map(sysinfo::Disk::available_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_disk_and_nothing_has_none() {
        assert!(free_disk(Path::new(".")).is_some());
        #[cfg(unix)]
        assert_eq!(free_disk(Path::new("no such folder")), None);
    }
}
