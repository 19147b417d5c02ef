//! The cache of `huggingface_hub`: a folder for each repository, with the content of files under
//! their hashes in `blobs`, a folder of links to them for each commit in `snapshots`, and the
//! commits of branches and tags in `refs`.

use std::path::{Path, PathBuf};

use crate::Repository;

/// The cache on this machine.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in this folder, which need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The cache's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of a repository's files as they were last fetched, possibly not all of them.
    pub fn snapshot(&self, repository: &Repository) -> Option<PathBuf> {
        let folder = self.repository(repository);
        let revision = &repository.revision;
        let commit = if is_commit(revision) {
            revision.clone()
        } else {
            let commit = std::fs::read_to_string(folder.join("refs").join(revision)).ok()?;
            commit.trim().to_owned()
        };
        // The content of a file must not lead out of the cache.
        let snapshot = is_commit(&commit).then(|| folder.join("snapshots").join(commit))?;
        snapshot.is_dir().then_some(snapshot)
    }

    pub(crate) fn repository(&self, repository: &Repository) -> PathBuf {
        self.folder.join(repository.folder())
    }
}

/// Whether this is the full hash of a commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// The files below a folder, by their paths relative to it, sorted.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_path_buf(), String::new())];
    while let Some((folder, before)) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = format!("{before}{}", entry.file_name().to_string_lossy());
            // Files are links to blobs; links to folders could lead anywhere.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((entry.path(), format!("{name}/")));
            } else if entry.path().is_file() {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}
