//! Cache keys of stages.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use f2_corpus::names;
use f2_files::ReadError;
use sha2::{Digest as _, Sha256};

use crate::{Error, Place, Stage, Stages};

/// A hash of everything that the results of a stage depend on: SHA-256 of the revision of its kind
/// of task, of the device if it needs one, and of the task, with paths replaced by hashes of the
/// user's files and the keys of the stages it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Key {
    /// The first digits, for folder names.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }

    fn of(
        stage: &Stage,
        device: &str,
        earlier: &[Self],
        contents: &mut Contents,
    ) -> Result<Self, Error> {
        let kind = stage.task.kind();
        let task = stage.task.try_map(|place| {
            Ok::<_, Error>(match place {
                Place::Outside(path) => format!("content {}", contents.of(path)?),
                Place::Made { stage, name } => format!("stage {}/{name}", earlier[*stage]),
                Place::Own(name) => format!("own {name}"),
            })
        })?;
        let task = serde_json::to_string(&task).expect("plain text and numbers");
        let device = if stage.task.needs_device() { device } else { "" };
        let revision = kind.revision();
        Ok(Self::hash(&format!("{} {revision}\ndevice {device}\n{task}", kind.name())))
    }

    fn hash(text: &str) -> Self {
        Self(hexadecimal(&Sha256::digest(text)))
    }
}

impl Stages {
    /// The keys of all stages on a device, which is identified by its name. Reads each of the
    /// user's files once.
    pub fn keys(&self, device: &str) -> Result<Vec<Key>, Error> {
        let mut contents = Contents::default();
        let mut keys = Vec::new();
        for stage in &self.0 {
            let key = Key::of(stage, device, &keys, &mut contents)?;
            keys.push(key);
        }
        Ok(keys)
    }
}

/// Hashes of the user's files, each computed once.
#[derive(Default)]
struct Contents(Vec<(PathBuf, String)>);

impl Contents {
    fn of(&mut self, path: &Path) -> Result<String, Error> {
        if let Some((_, hash)) = self.0.iter().find(|(known, _)| known == path) {
            return Ok(hash.clone());
        }
        let mut hash = Sha256::new();
        add(path, &mut hash).map_err(ReadError::of(path))?;
        let hash = hexadecimal(&hash.finalize());
        self.0.push((path.to_path_buf(), hash.clone()));
        Ok(hash)
    }
}

/// Hashes a file, or all files of a folder in the order of their names; of a corpus, only the
/// manifest, which has the hashes of its files.
fn add(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    if path.is_file() {
        io::copy(&mut File::open(path)?, hash)?;
        return Ok(());
    }
    let manifest = path.join(names::MANIFEST);
    if manifest.is_file() {
        return add(&manifest, hash);
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for entry in entries {
        hash.update(entry.file_name().unwrap_or_default().as_encoded_bytes());
        add(&entry, hash)?;
    }
    Ok(())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Corpora, CorpusSource, PlanPreset, TestTokens, stages};

    fn corpora(paths: Vec<PathBuf>) -> Corpora {
        Corpora { main: CorpusSource::Text(paths), pretraining: None }
    }

    #[test]
    fn a_change_reaches_all_that_depends_on_it_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("novel.txt");
        fs::write(&text, "once upon a time").unwrap();
        let mut plan = PlanPreset::Tiny.plan();
        let corpora = corpora(vec![text.clone()]);
        let all = stages(&plan, &corpora, TestTokens::default());
        let before = all.keys("cpu").unwrap();
        assert_eq!(before, all.keys("cpu").unwrap());

        plan.training.fine_tuning_steps += 1;
        let after = stages(&plan, &corpora, TestTokens::default()).keys("cpu").unwrap();
        let changed = all.0.iter().zip(before.iter().zip(&after));
        let changed: Vec<&str> = changed
            .filter(|(_, (before, after))| before != after)
            .map(|(stage, _)| stage.name.as_str())
            .filter(|name| !name.starts_with("generate") && !name.starts_with("score"))
            .collect();
        let all_changed = [
            "train-face",
            "perplexity-face",
            "train-unlikelihood-sequence",
            "perplexity-unlikelihood-sequence",
        ];
        assert_eq!(changed, all_changed);

        fs::write(&text, "once upon another time").unwrap();
        let other = all.keys("cpu").unwrap();
        assert!(before.iter().zip(&other).all(|(before, other)| before != other));
    }

    #[test]
    fn the_device_decides_what_is_computed_on_it() {
        let all = stages(&PlanPreset::Demo.plan(), &corpora(Vec::new()), TestTokens::default());
        let (cpu, gpu) = (all.keys("cpu").unwrap(), all.keys("cuda:0").unwrap());
        for (number, stage) in all.0.iter().enumerate() {
            let computed = !stage.name.starts_with("prepare") && !stage.name.starts_with("classes");
            assert_eq!(cpu[number] != gpu[number], computed, "{}", stage.name);
        }
    }
}
