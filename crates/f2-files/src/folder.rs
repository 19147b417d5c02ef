use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::claim::make_and_claim;
use crate::file::sync_parent;
use crate::leftover::{doomed_sibling, sweep_siblings, temporary_sibling};
use crate::{WriteError, disk};

/// A folder that appears under its final name only once it is complete.
///
/// Files are created inside [`path`](Self::path); [`publish`](Self::publish) syncs them and
/// renames the folder. Dropped before that, the folder and all in it are removed.
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
    /// Tells those who sweep leftovers that this is none.
    _claimed: File,
}

impl StagedFolder {
    /// Starts a folder that will be published as `destination`. Missing parents are created, and
    /// what killed writers of it left is removed.
    pub fn create(destination: &Path) -> Result<Self, WriteError> {
        sweep_siblings(destination);
        let staging = temporary_sibling(destination);
        let made = make_and_claim(&staging, || make_anew(&staging), |folder| folder);
        let claimed = made.map_err(WriteError::of(destination))?;
        let destination = destination.to_path_buf();
        Ok(Self { staging, destination, published: false, _claimed: claimed })
    }

    /// Where the files go until the folder is published.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Syncs every file and gives the folder its final name, replacing what stands there.
    ///
    /// A folder being replaced is moved aside first and removed last, so that at every moment
    /// one complete folder is on the disk.
    pub fn publish(mut self) -> Result<(), WriteError> {
        self.take_place().map_err(WriteError::of(&self.destination))
    }

    fn take_place(&mut self) -> io::Result<()> {
        sync_tree(&self.staging)?;
        let retired = self.retire_existing()?;
        if let Err(error) = disk::rename(&self.staging, &self.destination) {
            if let Some(retired) = retired {
                disk::rename(&retired, &self.destination)?;
            }
            return Err(error);
        }
        self.published = true;
        sync_parent(&self.destination)?;
        retired.map_or(Ok(()), |retired| disk::remove_folder(&retired))
    }

    fn retire_existing(&self) -> io::Result<Option<PathBuf>> {
        if !self.destination.exists() {
            return Ok(None);
        }
        let retired = self.staging.with_extension("retired");
        disk::rename(&self.destination, &retired)?;
        Ok(Some(retired))
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.published {
            // Nothing more can be done about a leftover here, and its name says what it is.
            let _ = disk::remove_folder(&self.staging);
        }
    }
}

/// Removes a folder so that no part of it is ever met under its name.
pub fn remove_folder_at_once(path: &Path) -> Result<(), WriteError> {
    let doomed = doomed_sibling(path);
    let removed = disk::rename(path, &doomed).and_then(|()| disk::remove_folder(&doomed));
    removed.map_err(WriteError::of(path))
}

/// Makes an empty folder, and all it lies in.
fn make_anew(folder: &Path) -> io::Result<File> {
    if let Some(parent) = folder.parent() {
        disk::create_folders(parent)?;
    }
    if folder.exists() {
        disk::remove_folder(folder)?;
    }
    disk::create_folder(folder)?;
    File::open(folder)
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
    if cfg!(unix) { disk::sync(folder) } else { Ok(()) }
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
    fn leftovers_of_a_killed_writer_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        let leftover = temporary_sibling(&corpus);
        fs::create_dir(&leftover).unwrap();
        fs::write(leftover.join("stale.bin"), "stale").unwrap();
        let staged = StagedFolder::create(&corpus).unwrap();
        assert_eq!(fs::read_dir(staged.path()).unwrap().count(), 0);
    }
}
