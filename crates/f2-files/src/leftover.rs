//! Leftovers of killed writers: their names, and their removal.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::claim::{Claim, claim};
use crate::disk;
use crate::holder::host;

/// The suffix of a file or folder that is being written.
const PARTIAL: &str = ".partial";
/// The suffix of a folder that is being removed.
const REMOVED: &str = ".removed";
/// Digits of a temporary name that identify the machine; as many random digits follow.
const HOST_DIGITS: usize = 8;

/// Whose leftovers are swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Those of this machine. Other machines may be writing, and some file systems do not share
    /// locks between machines.
    Here,
    /// Those of any machine: the caller is the only writer.
    Anywhere,
}

/// A new hidden name in the same folder, so that the rename never crosses file systems.
pub(crate) fn temporary_sibling(path: &Path) -> PathBuf {
    hidden_sibling(path, PARTIAL)
}

/// The name under which a folder is removed: a removal that is killed halfway must not leave a part
/// of it under its own name.
pub(crate) fn removal_sibling(path: &Path) -> PathBuf {
    hidden_sibling(path, REMOVED)
}

fn hidden_sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    // Processes in two containers can have the same id, and a process writes many files.
    name.push(format!(".{}-{}{:08x}{ending}", std::process::id(), this_host(), random()));
    path.with_file_name(name)
}

/// A hash of this machine's name, in eight digits.
fn this_host() -> String {
    format!("{:x}", Sha256::digest(host()))[..HOST_DIGITS].to_owned()
}

/// A random number, from the seed that the standard library draws for its hash maps.
fn random() -> u32 {
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Removes the leftovers of killed writers, on any machine, from a folder whose
/// [`Lock`](crate::Lock) the caller holds. Files of running processes stay. Errors are ignored,
/// since leftovers are harmless.
pub fn sweep(folder: &Path) {
    sweep_where(folder, Writers::Anywhere, |_| true);
}

/// [`sweep`] for the leftovers of one path.
pub(crate) fn sweep_siblings(path: &Path, writers: Writers) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut start = OsString::from(".");
    start.push(path.file_name().unwrap_or_default());
    start.push(".");
    sweep_where(parent.unwrap_or(Path::new(".")), writers, |name| {
        let rest = name.as_encoded_bytes().strip_prefix(start.as_encoded_bytes());
        // A writer and a suffix: more parts would be a leftover of another, longer name.
        rest.is_some_and(|rest| rest.split(|byte| *byte == b'.').count() == 2)
    });
}

fn sweep_where(folder: &Path, writers: Writers, chosen: impl Fn(&OsStr) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let here = this_host();
    let swept = |host: &str| writers == Writers::Anywhere || host.is_empty() || host == here;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !host_of_leftover(&name).is_some_and(swept) || !chosen(&name) {
            continue;
        }
        let path = entry.path();
        // Stays claimed until it is gone, so that no writer uses it meanwhile.
        let Some(_claimed) = abandoned(&path) else { continue };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if is_folder { disk::remove_folder(&path) } else { disk::remove_file(&path) };
    }
}

/// The machine that left this file: the first half of TAG in `.NAME.PROCESS-TAG.partial` or
/// `.NAME.PROCESS-TAG.removed`; empty without TAG, as in earlier versions. `None` if this is not
/// the name of a leftover.
fn host_of_leftover(name: &OsStr) -> Option<&str> {
    let name = name.as_encoded_bytes().strip_prefix(b".")?;
    let name = [PARTIAL, REMOVED].iter().find_map(|end| name.strip_suffix(end.as_bytes()))?;
    let writer = str::from_utf8(name.rsplit(|byte| *byte == b'.').next()?).ok()?;
    let (process, host) = match writer.split_once('-') {
        None => (writer, ""),
        Some((process, tag)) => (process, host_of_tag(tag)?),
    };
    let is_process = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    is_process.then_some(host)
}

fn host_of_tag(tag: &str) -> Option<&str> {
    let is_tag = tag.len() == 2 * HOST_DIGITS && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_tag.then(|| &tag[..HOST_DIGITS])
}

/// Claims a file or folder whose writer is gone. Links are never leftovers.
fn abandoned(path: &Path) -> Option<File> {
    let about = fs::symlink_metadata(path).ok()?;
    let file = (about.is_file() || about.is_dir()).then(|| File::open(path).ok())??;
    matches!(claim(&file), Claim::Ours).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_dead_are_swept_and_the_living_and_strangers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".a.7.partial", ".run.9.removed", ".b.x.partial", "c.7.partial", ".d.partial"]
        {
            fs::write(at(name), "half").unwrap();
        }
        fs::create_dir_all(at(".corpus.8.partial/in")).unwrap();
        let living = File::create(at(".living.6.partial")).unwrap();
        living.lock().unwrap();
        sweep_siblings(&at("a"), Writers::Here);
        let siblings_swept = names(folder.path());
        assert!(!siblings_swept.contains(&".a.7.partial".to_owned()));
        assert!(siblings_swept.contains(&".run.9.removed".to_owned()));
        sweep(folder.path());
        assert_eq!(
            names(folder.path()),
            [".b.x.partial", ".d.partial", ".living.6.partial", "c.7.partial"]
        );
        drop(living);
        sweep(folder.path());
        assert!(!at(".living.6.partial").exists());
    }

    #[test]
    fn names_are_new_every_time_and_tell_the_machine() {
        let [one, other] = [(); 2].map(|()| temporary_sibling(Path::new("folder/a")));
        assert_ne!(one, other);
        for path in [one, removal_sibling(Path::new("folder/b"))] {
            assert_eq!(path.parent(), Some(Path::new("folder")));
            assert_eq!(host_of_leftover(path.file_name().unwrap()), Some(&*this_host()));
        }
        for name in [".a.7-.partial", ".a.7-0123.partial", ".a.-0123456789abcdef.partial"] {
            assert_eq!(host_of_leftover(OsStr::new(name)), None, "{name}");
        }
    }

    /// The lock of another machine may be invisible here, so its writer counts as running unless
    /// the caller is the only writer.
    #[test]
    fn the_leftover_of_another_machine_waits_for_the_only_writer() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let elsewhere = if this_host() == "01234567" { "76543210" } else { "01234567" };
        let foreign = at(&format!(".a.7-{elsewhere}89abcdef.partial"));
        let own = at(&format!(".a.7-{}89abcdef.partial", this_host()));
        for path in [&foreign, &own] {
            fs::write(path, "half").unwrap();
        }
        sweep_siblings(&at("a"), Writers::Here);
        assert!(foreign.exists() && !own.exists());
        sweep(folder.path());
        assert!(!foreign.exists());
    }
}
