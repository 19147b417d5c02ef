//! Exchanging the names of two folders.

use std::io;
use std::path::Path;

use crate::disk;

/// Exchanges the names of two folders in one step.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    use crate::fault;

    fault::may_strike("exchange", other)?;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        // Some file systems cannot, network file systems for example.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => exchange_in_steps(one, other),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    exchange_in_steps(one, other)
}

/// Exchanges the names in three renames. For a moment nothing has the name `other`, but both
/// folders are on the disk at all times.
fn exchange_in_steps(one: &Path, other: &Path) -> io::Result<()> {
    let aside = one.with_extension("retired");
    disk::rename(other, &aside)?;
    if let Err(error) = disk::rename(one, other) {
        disk::rename(&aside, other)?;
        return Err(error);
    }
    disk::rename(&aside, one)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_ways_of_exchanging_exchange() {
        for exchange in [exchange, exchange_in_steps] {
            let parent = tempfile::tempdir().unwrap();
            let [one, other] = ["one", "other"].map(|name| parent.path().join(name));
            for folder in [&one, &other] {
                fs::create_dir(folder).unwrap();
                fs::write(folder.join("was"), folder.to_str().unwrap()).unwrap();
            }
            exchange(&one, &other).unwrap();
            assert_eq!(fs::read_to_string(one.join("was")).unwrap(), other.to_str().unwrap());
            assert_eq!(fs::read_to_string(other.join("was")).unwrap(), one.to_str().unwrap());
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
        }
    }
}
