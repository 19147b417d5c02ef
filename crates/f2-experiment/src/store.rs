//! The results of stages on disk.

use std::path::{Path, PathBuf};

use f2_files::{WriteError, disk, read_text, regular_file};
use serde::{Deserialize, Serialize};

use crate::{Error, Key, Place, Stage, Task};

const DONE: &str = "done.json";

/// Where stages leave their results: a folder for each, named by the stage and its key.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// `done.json`: the last thing a stage writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The stage.
    pub stage: String,
    /// Its whole key.
    pub key: String,
    /// How long it took, in seconds; the last session alone where it was resumed.
    pub seconds: f64,
}

impl Store {
    /// The stages of the experiment in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("stages") }
    }

    /// The folder of a stage.
    pub fn folder(&self, stage: &Stage, key: &Key) -> PathBuf {
        self.folder.join(format!("{}-{}", stage.name, key.short()))
    }

    /// The note of a stage that is done; `None` where it is not, or where some of its results are
    /// gone.
    pub fn done(&self, stage: &Stage, key: &Key) -> Option<Done> {
        let folder = self.folder(stage, key);
        let text = regular_file(&folder.join(DONE)).and_then(read_text).ok()?;
        let done: Done = serde_json::from_str(&text).ok()?;
        let whole = stage.makes.iter().all(|name| is_there(&folder.join(name)));
        (done.key == key.to_string() && whole).then_some(done)
    }

    /// Makes the folder ready and gives the task to run, which continues an earlier try where one
    /// left a run to resume; else leftovers are removed.
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

    /// Notes that a stage is done.
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

/// Whether a file holds something, or a folder some file.
fn is_there(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.metadata().is_ok_and(|metadata| metadata.len() > 0),
    }
}
