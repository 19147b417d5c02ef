use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use f2_files::{WriteError, disk};
use serde::{Deserialize, Serialize};

use crate::{Error, Key, Stage, Word};

const DONE: &str = "done.json";
const OUTPUT: &str = "output.txt";

/// Where stages leave what they make: a folder for each, named by the stage and its key.
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
    /// How long it took, in seconds, all sessions together where it was resumed.
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

    /// What a stage left when it was done; `None` where it was not, or where some of it is gone.
    pub fn done(&self, stage: &Stage, key: &Key) -> Option<Done> {
        let folder = self.folder(stage, key);
        let text = fs::read_to_string(folder.join(DONE)).ok()?;
        let done: Done = serde_json::from_str(&text).ok()?;
        let whole = stage.makes.iter().all(|name| is_there(&folder.join(name)));
        (done.key == key.to_string() && whole && folder.join(OUTPUT).is_file()).then_some(done)
    }

    /// What a stage that is done printed.
    pub fn output(&self, stage: &Stage, key: &Key) -> Result<String, Error> {
        Ok(f2_files::read_text(&self.folder(stage, key).join(OUTPUT))?)
    }

    /// Makes the folder ready and gives the command to run: the one that goes on, where an
    /// earlier try left something to go on with; else leftovers are removed.
    pub(crate) fn begin<'a>(&self, stage: &'a Stage, key: &Key) -> Result<&'a [Word], Error> {
        let folder = self.folder(stage, key);
        let resumable = folder.join("run/config.toml").is_file() && !folder.join(DONE).exists();
        if let Some(resume) = stage.resume.as_ref().filter(|_| resumable) {
            return Ok(resume);
        }
        if folder.exists() {
            disk::remove_folder(&folder).map_err(WriteError::of(&folder))?;
        }
        disk::create_folders(&folder).map_err(WriteError::of(&folder))?;
        Ok(&stage.words)
    }

    /// Keeps what a stage printed and notes that it is done.
    pub(crate) fn finish(
        &self,
        stage: &Stage,
        key: &Key,
        output: &str,
        seconds: f64,
    ) -> Result<(), Error> {
        let done = Done { stage: stage.name.clone(), key: key.to_string(), seconds };
        let note = serde_json::to_string_pretty(&done).expect("plain text and numbers") + "\n";
        for (name, text) in [(OUTPUT, output), (DONE, &note)] {
            f2_files::write_text_atomically(&self.folder(stage, key).join(name), text)?;
        }
        Ok(())
    }

    /// A command with the paths of this store.
    pub(crate) fn command(
        &self,
        words: &[Word],
        place: usize,
        stages: &[Stage],
        keys: &[Key],
    ) -> Vec<OsString> {
        let path = |stage: usize, name: &str| {
            self.folder(&stages[stage], &keys[stage]).join(name).into_os_string()
        };
        let word = |word: &Word| match word {
            Word::Plain(text) | Word::Aside(text) => text.into(),
            Word::Outside(path) => path.clone().into_os_string(),
            Word::Made { stage, name } => path(*stage, name),
            Word::Makes(name) => path(place, name),
        };
        words.iter().map(word).collect()
    }
}

/// Whether a file holds something, or a folder some file.
fn is_there(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.metadata().is_ok_and(|metadata| metadata.len() > 0),
    }
}
