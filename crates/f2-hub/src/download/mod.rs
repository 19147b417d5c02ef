//! Fetching files that are missing from the cache.

mod blob;
mod client;
mod digest;

use std::path::Path;

use f2_files::{WriteError, disk, write_text_atomically};

use crate::cache::is_commit;
use crate::hub::Snapshot;
use crate::{Cache, Environment, Error, Observer, Repository};
use blob::Blob;
use client::Client;

/// Fetches the wanted files that are missing from the cache.
pub(crate) fn fetch(
    environment: &Environment,
    cache: &Cache,
    repository: &Repository,
    wanted: &dyn Fn(&str) -> bool,
    observer: &dyn Observer,
) -> Result<Snapshot, Error> {
    let client = Client::new(environment, repository)?;
    let (commit, names) = client.list()?;
    let files: Vec<String> =
        names.into_iter().filter(|name| is_inside(name) && wanted(name)).collect();
    if files.is_empty() {
        return Err(Error::NothingWanted { repository: repository.to_string() });
    }
    let home = cache.repository(repository);
    let folder = home.join("snapshots").join(&commit);
    let missing = files.iter().filter(|name| !folder.join(name).exists());
    let blobs: Vec<(&String, Blob)> = missing
        .map(|name| Ok((name, client.head(&commit, name)?)))
        .collect::<Result<_, Error>>()?;
    observer.begin(repository, blobs.iter().map(|(_, blob)| blob.bytes).sum());
    for (name, blob) in &blobs {
        let path = blob.fetch(&client, cache, repository, &commit, name, observer)?;
        link(&path, &folder, name)?;
    }
    // Last: until then the branch refers to its previous commit, which may be complete.
    if !is_commit(&repository.revision) {
        let path = home.join("refs").join(&repository.revision);
        make_parent(&path)?;
        write_text_atomically(&path, &commit)?;
    }
    Ok(Snapshot { folder, files })
}

/// Whether a path stays below its base folder, on any system.
fn is_inside(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    path.split('/').all(is_name) && !path.contains(['\\', ':', '\0'])
}

fn make_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    disk::create_folders(parent).map_err(WriteError::of(path))?;
    Ok(())
}

/// Gives a blob its name in a snapshot by a relative link, which stays valid if the cache is moved.
fn link(blob: &Path, snapshot: &Path, name: &str) -> Result<(), Error> {
    let path = snapshot.join(name);
    make_parent(&path)?;
    #[cfg(unix)]
    let made = {
        let up = "../".repeat(2 + name.matches('/').count());
        let hash = blob.file_name().unwrap_or_default().to_string_lossy();
        std::os::unix::fs::symlink(format!("{up}blobs/{hash}"), &path)
    };
    #[cfg(not(unix))]
    let made = std::fs::copy(blob, &path).map(drop);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(WriteError::of(&path)(error).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_snapshot() {
        assert!(is_inside("config.json") && is_inside("data/train.txt"));
        for name in ["", "../x", "/etc/passwd", "a//b", "a/../../b", "..\\x", "c:x", "a/."] {
            assert!(!is_inside(name), "{name}");
        }
    }
}
