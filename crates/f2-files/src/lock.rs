//! One owner at a time for a folder that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::claim::{Claim, claim, is_at};
use crate::disk::{self, OutputFile};
use crate::leftover::removal_sibling;
use crate::{Holder, WriteError};

/// The name of the lock inside a folder.
const NAME: &str = ".lock";

/// The exclusive right to write a folder, released when dropped.
///
/// It is a file locked by the operating system (`flock`, `LockFileEx`). Such a lock ends with its
/// process, so the lock of a killed process is taken over. On a file system without them, the
/// process that creates the file holds the lock, and the file names that process: it is assumed to
/// be running unless it was a process of this machine that has ended.
///
/// ```
/// # let parent = tempfile::tempdir()?;
/// # let run = parent.path().join("run");
/// let lock = f2_files::Lock::inside(&run)?;
/// let refused = f2_files::Lock::inside(&run).unwrap_err();
/// assert!(refused.to_string().contains("is in use by process"));
/// drop(lock);
/// f2_files::Lock::inside(&run)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    claimed: OutputFile,
}

/// Why a folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{} is in use by {holder}", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The process that holds it.
        holder: Holder,
        /// The lock's file.
        lock: PathBuf,
    },
    /// The lock cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Lock {
    /// Locks a folder that stays where it is, such as a run; created if missing.
    pub fn inside(folder: &Path) -> Result<Self, LockError> {
        disk::create_folders(folder).map_err(WriteError::of(folder))?;
        Self::take(folder, folder.join(NAME))
    }

    /// Locks a folder that is written under another name and renamed at the end, such as a corpus:
    /// the lock is beside it.
    pub fn beside(folder: &Path) -> Result<Self, LockError> {
        // The lock must be the same under every name of the folder.
        let place = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            disk::create_folders(parent).map_err(WriteError::of(folder))?;
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(NAME);
        Self::take(folder, place.with_file_name(name))
    }

    fn take(folder: &Path, path: PathBuf) -> Result<Self, LockError> {
        Self::take_by(claim, folder, path)
    }

    fn take_by(
        claim: impl Fn(&File) -> Claim,
        folder: &Path,
        path: PathBuf,
    ) -> Result<Self, LockError> {
        let failed = |error| LockError::Write(WriteError::of(folder)(error));
        loop {
            let Some((file, is_new)) = open(&path).map_err(failed)? else { continue };
            let ours = match claim(file.file()) {
                // Its last owner may have removed it after it was opened here.
                Claim::Ours if !is_at(file.file(), &path) => continue,
                Claim::Ours => true,
                Claim::Taken => false,
                Claim::Unknown if !is_new && is_stale(&path) => {
                    retire(&path).map_err(failed)?;
                    continue;
                }
                Claim::Unknown => is_new,
            };
            if !ours {
                let holder = Holder::read(&path).unwrap_or_default();
                let folder = folder.to_path_buf();
                return Err(LockError::InUse { folder, holder, lock: path });
            }
            // If signing fails, dropping the lock removes the file.
            let mut lock = Self { path, claimed: file };
            sign(&mut lock.claimed).map_err(failed)?;
            return Ok(lock);
        }
    }
}

/// Opens the file of a lock, and returns whether it is new; `None` if another process removed it
/// meanwhile.
fn open(path: &Path) -> io::Result<Option<(OutputFile, bool)>> {
    match OutputFile::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(|file| Some((file, true))),
    }
    match OutputFile::open(path, &in_place()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(|file| Some((file, false))),
    }
}

/// Opens the file without following links: a link in somebody else's folder must not redirect the
/// signature into another file.
#[cfg(unix)]
fn in_place() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    File::options().read(true).write(true).custom_flags(no_links).clone()
}

#[cfg(not(unix))]
fn in_place() -> OpenOptions {
    File::options().read(true).write(true).clone()
}

/// Whether it was signed by a process of this machine that has ended.
fn is_stale(path: &Path) -> bool {
    Holder::read(path).is_some_and(|holder| holder.is_gone())
}

/// Removes the lock of a dead process on a file system without locks. If another process did so
/// first and now holds the lock itself, the file is put back.
fn retire(path: &Path) -> io::Result<()> {
    let aside = removal_sibling(path);
    match disk::rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    if is_stale(&aside) { disk::remove_file(&aside) } else { disk::rename(&aside, path) }
}

/// Writes the name of this process into the file.
fn sign(file: &mut OutputFile) -> io::Result<()> {
    file.file().set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(Holder::this_process().to_text().as_bytes())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the file is still claimed: a process that opens the path later finds another file
        // or none.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_at_a_time_named_in_the_refusal() {
        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        let lock = Lock::beside(&corpus).unwrap();
        let refused = Lock::beside(&corpus).unwrap_err();
        let LockError::InUse { holder, lock: file, .. } = &refused else { panic!("{refused}") };
        assert_eq!(holder.process, std::process::id());
        assert_eq!(file, &parent.path().join(".corpus.lock"));
        assert!(refused.to_string().contains(&format!("process {}", std::process::id())));
        drop(lock);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_whose_owner_was_killed_is_taken_over() {
        let run = tempfile::tempdir().unwrap();
        let stale = Holder { process: 4_000_000, ..Holder::this_process() };
        fs::write(run.path().join(NAME), stale.to_text()).unwrap();
        let lock = Lock::inside(run.path()).unwrap();
        let holder = Holder::read(&run.path().join(NAME)).unwrap();
        assert_eq!(holder.process, std::process::id());
        drop(lock);
        assert!(!run.path().join(NAME).exists());
    }

    #[test]
    fn a_folder_has_one_lock_under_all_its_names() {
        let parent = tempfile::tempdir().unwrap();
        let corpus = parent.path().join("corpus");
        fs::create_dir(&corpus).unwrap();
        let _lock = Lock::beside(&corpus).unwrap();
        assert!(Lock::beside(&parent.path().join("./corpus/")).is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&corpus, parent.path().join("other")).unwrap();
            assert!(Lock::beside(&parent.path().join("other")).is_err());
        }
    }

    /// A file system without locks.
    fn unknown(_: &File) -> Claim {
        Claim::Unknown
    }

    /// Several threads compete: never two of them hold it.
    #[test]
    fn a_lock_is_never_held_twice() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let run = tempfile::tempdir().unwrap();
        let (inside, entered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while entered.load(Ordering::SeqCst) < 200 {
                        let Ok(_lock) = Lock::inside(run.path()) else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    /// Two threads open the file before either has signed it.
    #[test]
    fn without_locks_only_the_maker_of_the_file_has_it() {
        let run = tempfile::tempdir().unwrap();
        let both_open = std::sync::Barrier::new(2);
        let wait = |_: &File| {
            both_open.wait();
            Claim::Unknown
        };
        let take = || Lock::take_by(wait, run.path(), run.path().join(NAME));
        for _ in 0..50 {
            let outcomes = std::thread::scope(|scope| {
                let other = scope.spawn(take);
                [take(), other.join().unwrap()]
            });
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        }
    }

    #[test]
    fn without_locks_the_signature_decides() {
        let run = tempfile::tempdir().unwrap();
        let path = run.path().join(NAME);
        let take = || Lock::take_by(unknown, run.path(), path.clone());
        let signed = |holder: &Holder| fs::write(&path, holder.to_text()).unwrap();
        let dead = Holder { process: 4_000_000, ..Holder::this_process() };
        if cfg!(unix) {
            signed(&dead);
            drop(take().unwrap());
            assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
        }
        for holder in [Holder { host: "elsewhere".to_owned(), ..dead }, Holder::this_process()] {
            signed(&holder);
            assert!(
                matches!(take(), Err(LockError::InUse { holder: found, .. }) if found == holder)
            );
        }
        // Its owner has created it but not signed it yet.
        fs::write(&path, "").unwrap();
        assert!(take().unwrap_err().to_string().ends_with("is in use by another process"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_no_lock_and_the_file_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (other, run) = (folder.path().join("notes.txt"), folder.path().join("run"));
        fs::write(&other, "mine").unwrap();
        fs::create_dir(&run).unwrap();
        std::os::unix::fs::symlink(&other, run.join(NAME)).unwrap();
        assert!(matches!(Lock::inside(&run), Err(LockError::Write(_))));
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}
