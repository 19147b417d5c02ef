//! The storage of stage results on disk.

use std::path::{Path, PathBuf};

use f2_files::{WriteError, disk, read_text, regular_file};
use serde::{Deserialize, Serialize};

use crate::{Error, Key, Place, Stage, Task};

const DONE: &str = "done.json";

/// The results of stages: a folder for each, named by the stage and its key.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// `done.json`, written last, when a stage is completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The stage.
    pub stage: String,
    /// Its full key.
    pub key: String,
    /// Its duration in seconds; if it was resumed, that of the last session only.
    pub seconds: f64,
}

impl Store {
    /// The store of the experiment in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("stages") }
    }

    /// The folder of a stage.
    pub fn folder(&self, stage: &Stage, key: &Key) -> PathBuf {
        self.folder.join(format!("{}-{}", stage.name, key.short()))
    }

    /// The record of a completed stage; `None` if it is not completed, or some of its results are
    /// missing.
    pub fn done(&self, stage: &Stage, key: &Key) -> Option<Done> {
        let folder = self.folder(stage, key);
        let text = regular_file(&folder.join(DONE)).and_then(read_text).ok()?;
        let done: Done = serde_json::from_str(&text).ok()?;
        let whole = stage.makes.iter().all(|name| is_there(&folder.join(name)));
        (done.key == key.to_string() && whole).then_some(done)
    }

    /// Prepares the folder and returns the task to run. If an earlier attempt left a run that can
    /// be resumed, the task resumes it; otherwise remnants are removed.
    pub(crate) fn begin(
        &self,
        number: usize,
        stages: &[Stage],
        keys: &[Key],
    ) -> Result<Task<PathBuf>, Error> {
        let mut task = self.task(number, stages, keys);
        let folder = self.folder(&stages[number], &keys[number]);
        let resumable = folder.join("run/config.toml").is_file() && !folder.join(DONE).exists();
        if let Task::Train(training) = &mut task
            && resumable
        {
            training.resume = true;
            return Ok(task);
        }
        if folder.exists() {
            disk::remove_folder(&folder).map_err(WriteError::of(&folder))?;
        }
        disk::create_folders(&folder).map_err(WriteError::of(&folder))?;
        Ok(task)
    }

    /// Records that a stage is completed.
    pub(crate) fn finish(&self, stage: &Stage, key: &Key, seconds: f64) -> Result<(), Error> {
        let done = Done { stage: stage.name.clone(), key: key.to_string(), seconds };
        let note = serde_json::to_string_pretty(&done).expect("plain text and numbers") + "\n";
        Ok(f2_files::write_text_atomically(&self.folder(stage, key).join(DONE), &note)?)
    }

    /// A stage's task with the paths of this store.
    fn task(&self, number: usize, stages: &[Stage], keys: &[Key]) -> Task<PathBuf> {
        let path = |stage: usize, name: &str| self.folder(&stages[stage], &keys[stage]).join(name);
        stages[number].task.map(|place| match place {
            Place::Outside(path) => path.clone(),
            Place::Made { stage, name } => path(*stage, name),
            Place::Own(name) => path(number, name),
        })
    }
}

/// Whether a path is a non-empty file or folder.
fn is_there(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.metadata().is_ok_and(|metadata| metadata.len() > 0),
    }
}
