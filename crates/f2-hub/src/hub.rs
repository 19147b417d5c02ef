//! The hub behind its local cache.

use std::path::PathBuf;

use crate::cache::files;
use crate::{Cache, Environment, Error, Repository};

/// The hub and its local cache.
#[derive(Clone, Debug)]
pub struct Hub {
    environment: Environment,
    cache: Cache,
}

/// Receives the progress of a download, and may interrupt it.
pub trait Observer {
    /// Begins a download of this many bytes.
    fn begin(&self, repository: &Repository, bytes: u64);
    /// This many further bytes are in the cache.
    fn advance(&self, bytes: u64);
    /// Shows the user a note.
    fn remark(&self, words: &str);
    /// Whether the user asked to stop.
    fn interrupted(&self) -> bool;
}

/// Files of a repository in the cache.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Their folder.
    pub folder: PathBuf,
    /// The wanted files, by their paths relative to the folder.
    pub files: Vec<String>,
}

impl Hub {
    /// The hub and the cache of this environment.
    pub fn new(environment: Environment) -> Self {
        let cache = Cache::new(environment.cache.clone());
        Self { environment, cache }
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The wanted files that are in the cache; `None` if it has none of them.
    pub fn cached(
        &self,
        repository: &Repository,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Snapshot> {
        let folder = self.cache.snapshot(repository)?;
        let files: Vec<String> = files(&folder).into_iter().filter(|name| wanted(name)).collect();
        (!files.is_empty()).then_some(Snapshot { folder, files })
    }

    /// The wanted files of a repository; those missing from the cache are downloaded. If the hub
    /// cannot be reached, the cached files are returned, if any.
    pub fn fetch(
        &self,
        repository: &Repository,
        wanted: &dyn Fn(&str) -> bool,
        observer: &dyn Observer,
    ) -> Result<Snapshot, Error> {
        if self.environment.offline {
            return self.cached_or(repository, wanted, "HF_HUB_OFFLINE forbids fetching it");
        }
        #[cfg(feature = "download")]
        return self.download(repository, wanted, observer);
        #[cfg(not(feature = "download"))]
        {
            let _ = observer;
            let reason = "this program was built without downloads";
            self.cached_or(repository, wanted, reason)
        }
    }

    fn cached_or(
        &self,
        repository: &Repository,
        wanted: &dyn Fn(&str) -> bool,
        reason: &'static str,
    ) -> Result<Snapshot, Error> {
        self.cached(repository, wanted).ok_or_else(|| Error::NotCached {
            repository: repository.to_string(),
            cache: self.cache.folder().to_path_buf(),
            reason,
        })
    }

    #[cfg(feature = "download")]
    fn download(
        &self,
        repository: &Repository,
        wanted: &dyn Fn(&str) -> bool,
        observer: &dyn Observer,
    ) -> Result<Snapshot, Error> {
        let (environment, cache) = (&self.environment, &self.cache);
        match crate::download::fetch(environment, cache, repository, wanted, observer) {
            Err(error @ Error::Unreachable { .. }) => {
                let Some(cached) = self.cached(repository, wanted) else { return Err(error) };
                observer.remark(&format!("{error}; the copy in the cache is used"));
                Ok(cached)
            }
            fetched => fetched,
        }
    }
}
