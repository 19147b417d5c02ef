//! Leftovers of killed writers: their names, and sweeping them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::claim::{Claim, claim};
use crate::disk;

/// The suffix of a file or folder that is being written.
const PARTIAL: &str = ".partial";
/// The suffix of a folder that is being removed.
const REMOVED: &str = ".removed";

/// A hidden name in the same folder, so that the rename never crosses file systems. The process
/// id keeps two writers of one path apart.
pub(crate) fn temporary_sibling(path: &Path) -> PathBuf {
    hidden_sibling(path, &format!(".{}{PARTIAL}", std::process::id()))
}

/// The name under which a folder is removed: a removal that is killed halfway must not leave a part
/// of it under its own name.
pub(crate) fn removal_sibling(path: &Path) -> PathBuf {
    hidden_sibling(path, &format!(".{}{REMOVED}", std::process::id()))
}

fn hidden_sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

/// Removes what killed writers left in a folder. Files of a running process, on whatever machine,
/// stay, and so does what cannot be removed: a leftover is harmless.
pub fn sweep(folder: &Path) {
    sweep_where(folder, |_| true);
}

/// [`sweep`] for what was written in place of one path.
pub(crate) fn sweep_siblings(path: &Path) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut start = OsString::from(".");
    start.push(path.file_name().unwrap_or_default());
    start.push(".");
    sweep_where(parent.unwrap_or(Path::new(".")), |name| {
        let rest = name.as_encoded_bytes().strip_prefix(start.as_encoded_bytes());
        // A process and an ending: more would be the leftover of another, longer name.
        rest.is_some_and(|rest| rest.split(|byte| *byte == b'.').count() == 2)
    });
}

fn sweep_where(folder: &Path, chosen: impl Fn(&OsStr) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !is_leftover(&name) || !chosen(&name) {
            continue;
        }
        let path = entry.path();
        // Claimed until it is gone, so that no writer takes it up in between.
        let Some(_claimed) = abandoned(&path) else { continue };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if is_folder { disk::remove_folder(&path) } else { disk::remove_file(&path) };
    }
}

/// `.NAME.PROCESS.partial` or `.NAME.PROCESS.removed`.
fn is_leftover(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let process = [PARTIAL, REMOVED]
        .iter()
        .find_map(|ending| name.strip_suffix(ending.as_bytes()))
        .and_then(|name| name.rsplit(|byte| *byte == b'.').next());
    name.starts_with(b".")
        && process.is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit))
}

/// Claims what was made by a process that is gone. Links are never ours.
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
        sweep_siblings(&at("a"));
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
}
