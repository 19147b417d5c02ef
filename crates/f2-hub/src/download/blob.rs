//! Downloading the content of one file to its place in the cache, under its hash.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use f2_files::{OutputFile, ReadError, WriteError, disk};

use super::client::Client;
use super::digest::Running;
use super::make_parent;
use crate::{Cache, Error, Observer, Repository};

/// Lost connections in a row, without a byte received, after which the download fails.
const MOST_FAILURES: u32 = 4;

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Hash and size of a file, as the hub announced them.
pub(super) struct Blob {
    hash: String,
    pub(super) bytes: u64,
}

impl Blob {
    /// `None` if the hash is of a kind that cannot be checked.
    pub(super) fn new(hash: String, bytes: u64) -> Option<Self> {
        Running::of(&hash, bytes).map(|_| Self { hash, bytes })
    }

    fn running(&self) -> Running {
        Running::of(&self.hash, self.bytes).expect("checked by `new`")
    }

    /// Fetches the content into the cache, unless it is there; returns its path.
    pub(super) fn fetch(
        &self,
        client: &Client<'_>,
        cache: &Cache,
        repository: &Repository,
        commit: &str,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<PathBuf, Error> {
        let blobs = cache.repository(repository).join("blobs");
        let path = blobs.join(&self.hash);
        let _lock = self.lock(cache, repository)?;
        if path.exists() {
            observer.advance(self.bytes);
            return Ok(path);
        }
        let partial = blobs.join(format!("{}.incomplete", self.hash));
        make_parent(&partial)?;
        let mut arriving = Arriving::resume(self, &partial, observer)?;
        arriving.finish(client, commit, name, observer)?;
        let found = arriving.hash.finish();
        if found != self.hash {
            // Resuming could never repair it.
            let _ = disk::remove_file(&partial);
            return Err(Error::Damaged {
                repository: repository.to_string(),
                file: name.to_owned(),
                announced: self.hash.clone(),
                found,
            });
        }
        let placed = arriving.out.sync().and_then(|()| disk::rename(&partial, &path));
        placed.and_then(|()| disk::sync(&blobs)).map_err(WriteError::of(&path))?;
        Ok(path)
    }

    /// Locks the file so that one process at a time fetches it; Python's `huggingface_hub` takes
    /// the same lock.
    fn lock(&self, cache: &Cache, repository: &Repository) -> Result<File, Error> {
        let locks = cache.folder().join(".locks").join(repository.folder());
        let path = locks.join(format!("{}.lock", self.hash));
        make_parent(&path)?;
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(WriteError::of(&path))?;
        // On a file system without locks, two processes may fetch the same bytes.
        let _ = file.lock();
        Ok(file)
    }
}

/// A file that is being fetched: the part received so far, and its hash.
struct Arriving<'a> {
    blob: &'a Blob,
    out: OutputFile,
    path: PathBuf,
    length: u64,
    hash: Running,
}

impl<'a> Arriving<'a> {
    /// Continues after the bytes left by an earlier attempt.
    fn resume(blob: &'a Blob, path: &Path, observer: &dyn Observer) -> Result<Self, Error> {
        let out = OutputFile::append(path).map_err(WriteError::of(path))?;
        let path = path.to_path_buf();
        let mut there = File::open(&path).map_err(ReadError::of(&path))?;
        let mut arriving = Self { blob, out, path, length: 0, hash: blob.running() };
        let mut buffer = vec![0; BUFFER];
        loop {
            match there.read(&mut buffer).map_err(ReadError::of(&arriving.path))? {
                0 => break,
                read => arriving.count(&buffer[..read]),
            }
        }
        if arriving.length > blob.bytes {
            arriving.restart()?;
        }
        observer.advance(arriving.length);
        Ok(arriving)
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// Starts over.
    fn restart(&mut self) -> Result<(), Error> {
        self.out = OutputFile::create(&self.path).map_err(WriteError::of(&self.path))?;
        self.hash = self.blob.running();
        self.length = 0;
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.length == self.blob.bytes
    }

    /// Fetches the rest, reconnecting if a connection is lost.
    fn finish(
        &mut self,
        client: &Client<'_>,
        commit: &str,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        let mut failures = 0;
        while !self.is_whole() {
            let before = self.length;
            let lost = match self.receive(client, commit, name, observer) {
                Ok(()) if self.is_whole() => break,
                Ok(()) => client.unreachable(&"the connection ended before the file did"),
                Err(lost @ Error::Unreachable { .. }) => lost,
                Err(other) => return Err(other),
            };
            failures = if self.length > before { 0 } else { failures + 1 };
            if failures > MOST_FAILURES {
                return Err(lost);
            }
            std::thread::sleep(Duration::from_millis(100 << (2 * failures)));
        }
        Ok(())
    }

    /// Reads from one connection until it ends or the file is complete.
    fn receive(
        &mut self,
        client: &Client<'_>,
        commit: &str,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        let (continued, mut body) = client.read(commit, name, self.length)?;
        if self.length > 0 && !continued {
            // The hub does not support resuming.
            self.restart()?;
        }
        let mut buffer = vec![0; BUFFER];
        while !self.is_whole() {
            if observer.interrupted() {
                return Err(Error::Interrupted { file: name.to_owned() });
            }
            // Nothing is read beyond the announced size.
            let left = self.blob.bytes - self.length;
            let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
            let read = match body.read(&mut buffer[..most]) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(client.unreachable(&error)),
            };
            self.out.write_all(&buffer[..read]).map_err(WriteError::of(&self.path))?;
            self.count(&buffer[..read]);
            observer.advance(read as u64);
        }
        Ok(())
    }
}
