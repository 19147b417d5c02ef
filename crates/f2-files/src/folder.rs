//! Folders that are published as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::claim::make_and_claim;
use crate::destination::followed;
use crate::exchange::exchange;
use crate::file::sync_parent;
use crate::leftover::{Writers, removal_sibling, sweep_siblings, temporary_sibling};
use crate::{WriteError, disk};

/// A folder that appears under its final name only once it is complete.
///
/// Files are created inside [`path`](Self::path); [`publish`](Self::publish) syncs them and
/// renames the folder. If dropped before that, the folder and its contents are removed.
///
/// ```
/// # let parent = tempfile::tempdir()?;
/// # let corpus = parent.path().join("corpus");
/// let staged = f2_files::StagedFolder::create(&corpus)?;
/// std::fs::write(staged.path().join("counts.json"), "[3, 2, 1]")?;
/// assert!(!corpus.exists());
/// staged.publish()?;
/// assert!(corpus.join("counts.json").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StagedFolder {
    staging: PathBuf,
    destination: PathBuf,
    published: bool,
    /// Keeps the folder from being swept as a leftover.
    _claimed: Option<File>,
}

impl StagedFolder {
    /// Starts a folder that will be published as `destination`, or as the target of a symbolic
    /// link of that name. Creates missing parents and removes the leftovers of killed writers: the
    /// caller must be the only writer, as a [`Lock`](crate::Lock) ensures.
    pub fn create(destination: &Path) -> Result<Self, WriteError> {
        let begin = || {
            let destination = followed(destination)?;
            sweep_siblings(&destination, Writers::Anywhere);
            let name = || temporary_sibling(&destination);
            let (staging, claimed) = make_and_claim(name, make, Option::as_ref)?;
            Ok(Self { staging, destination, published: false, _claimed: claimed })
        };
        begin().map_err(WriteError::of(destination))
    }

    /// The folder's path until it is published.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Syncs every file and gives the folder its final name, replacing an existing folder.
    ///
    /// An existing folder is exchanged with the new one, in one step if the system supports that,
    /// and removed last.
    pub fn publish(mut self) -> Result<(), WriteError> {
        self.take_place(true).map_err(WriteError::of(&self.destination))
    }

    /// [`publish`](Self::publish) that replaces nothing but an empty folder: if something else has
    /// the name by now, it stays and this fails.
    pub fn publish_new(mut self) -> Result<(), WriteError> {
        self.take_place(false).map_err(WriteError::of(&self.destination))
    }

    fn take_place(&mut self, replace: bool) -> io::Result<()> {
        sync_tree(&self.staging)?;
        let replaced = replace && self.destination.exists();
        if replaced {
            exchange(&self.staging, &self.destination)?;
        } else {
            disk::rename(&self.staging, &self.destination)?;
        }
        self.published = true;
        sync_parent(&self.destination)?;
        if replaced { disk::remove_folder(&self.staging) } else { Ok(()) }
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.published {
            // An error cannot be reported here; the next writer removes the leftover.
            let _ = disk::remove_folder(&self.staging);
        }
    }
}

/// Removes a folder; a reader never sees a part of it under its name.
pub fn remove_folder_at_once(path: &Path) -> Result<(), WriteError> {
    let removed_name = removal_sibling(path);
    let removed =
        disk::rename(path, &removed_name).and_then(|()| disk::remove_folder(&removed_name));
    removed.map_err(WriteError::of(path))
}

/// Creates an empty folder and its missing parents, and opens the folder so that it can be claimed.
/// Windows cannot open folders: there, a folder left by a killed writer is not swept.
fn make(folder: &Path) -> io::Result<Option<File>> {
    if let Some(parent) = folder.parent() {
        disk::create_folders(parent)?;
    }
    disk::create_folder(folder)?;
    if cfg!(unix) { File::open(folder).map(Some) } else { Ok(None) }
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sync_tree(&path)?;
        } else {
            disk::sync(&path)?;
        }
    }
    disk::sync(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_unpublished_it_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let staged = StagedFolder::create(&parent.path().join("corpus")).unwrap();
        fs::write(staged.path().join("train.bin"), "half").unwrap();
        drop(staged);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn publishing_replaces_the_whole_folder() {
        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        fs::create_dir(&corpus).unwrap();
        fs::write(corpus.join("old.bin"), "old").unwrap();
        let staged = StagedFolder::create(&corpus).unwrap();
        fs::write(staged.path().join("new.bin"), "new").unwrap();
        staged.publish().unwrap();
        assert!(corpus.join("new.bin").exists());
        assert!(!corpus.join("old.bin").exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_that_must_be_free_takes_no_folder_away() {
        let parent = tempfile::tempdir().unwrap();
        let model = parent.path().join("model");
        let stage = || {
            let staged = StagedFolder::create(&model).unwrap();
            fs::write(staged.path().join("model.json"), "new").unwrap();
            staged
        };
        let staged = stage();
        fs::create_dir(&model).unwrap();
        fs::write(model.join("thesis.txt"), "the only copy").unwrap();
        staged.publish_new().unwrap_err();
        assert_eq!(fs::read_to_string(model.join("thesis.txt")).unwrap(), "the only copy");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
        fs::remove_file(model.join("thesis.txt")).unwrap();
        stage().publish_new().unwrap();
        assert!(model.join("model.json").exists());
    }

    /// Polls for the folder while it is replaced repeatedly.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_being_replaced_is_never_absent() {
        use std::sync::atomic::{AtomicBool, Ordering};

        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        fs::create_dir(&corpus).unwrap();
        fs::write(corpus.join("manifest.json"), "0").unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let absent = scope.spawn(|| {
                let mut absent = 0;
                while !done.load(Ordering::Relaxed) {
                    absent += usize::from(!corpus.join("manifest.json").exists());
                }
                absent
            });
            for round in 1..200 {
                let staged = StagedFolder::create(&corpus).unwrap();
                fs::write(staged.path().join("manifest.json"), round.to_string()).unwrap();
                staged.publish().unwrap();
            }
            done.store(true, Ordering::Relaxed);
            assert_eq!(absent.join().unwrap(), 0);
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_stays_one() {
        let parent = tempfile::tempdir().unwrap();
        let (corpus, link) = (parent.path().join("corpus"), parent.path().join("link"));
        std::os::unix::fs::symlink("corpus", &link).unwrap();
        for _ in 0..2 {
            let staged = StagedFolder::create(&link).unwrap();
            fs::write(staged.path().join("new.bin"), "new").unwrap();
            staged.publish().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert!(corpus.join("new.bin").exists());
        }
    }

    #[test]
    fn leftovers_of_a_killed_writer_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        let leftover = temporary_sibling(&corpus);
        fs::create_dir(&leftover).unwrap();
        fs::write(leftover.join("stale.bin"), "stale").unwrap();
        let staged = StagedFolder::create(&corpus).unwrap();
        assert_eq!(fs::read_dir(staged.path()).unwrap().count(), 0);
        assert!(!leftover.exists());
    }
}
