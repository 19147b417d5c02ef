use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use f2_files::ReadError;
use sha2::{Digest as _, Sha256};

use crate::{Error, Stage, Stages, Word};

/// Changes when stages of before may not be reused, though their commands look the same.
const GENERATION: &str = concat!("f2 ", env!("CARGO_PKG_VERSION"), ", stages 1");

/// All that decides what a stage makes, in a short name: SHA-256 of its command, with the content
/// of the user's files and the keys of the stages it reads in place of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Key {
    /// Its beginning, for the names of folders.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }

    fn of(stage: &Stage, earlier: &[Self], contents: &mut Contents) -> Result<Self, Error> {
        let mut hash = Sha256::new();
        hash.update(GENERATION);
        for word in &stage.words {
            // Each word with its kind and length before it, so that no two commands look alike.
            let (kind, text) = match word {
                Word::Plain(text) => ('p', text.clone()),
                Word::Aside(_) => continue,
                Word::Outside(path) => ('o', contents.of(path)?),
                Word::Made { stage, name } => ('m', format!("{}/{name}", earlier[*stage])),
                Word::Makes(name) => ('n', (*name).to_owned()),
            };
            hash.update(format!("{kind}{}:{text}", text.len()));
        }
        Ok(Self(hexadecimal(&hash.finalize())))
    }
}

impl Stages {
    /// The key of every stage. Reads the user's files once.
    pub fn keys(&self) -> Result<Vec<Key>, Error> {
        let mut contents = Contents::default();
        let mut keys = Vec::new();
        for stage in &self.0 {
            let key = Key::of(stage, &keys, &mut contents)?;
            keys.push(key);
        }
        Ok(keys)
    }
}

/// Hashes of the user's files, each taken once.
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

/// Adds a file, or all files of a folder in the order of their names. A corpus says in its
/// manifest what it was made from.
fn add(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    if path.is_file() {
        io::copy(&mut File::open(path)?, hash)?;
        return Ok(());
    }
    let manifest = path.join("manifest.json");
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
    use crate::{PlanPreset, TestTokens, TextSource, Texts, stages};

    fn texts(paths: Vec<PathBuf>) -> Texts {
        Texts { main: TextSource::Text(paths), pretraining: None }
    }

    #[test]
    fn a_change_reaches_all_that_depends_on_it_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("novel.txt");
        fs::write(&text, "once upon a time").unwrap();
        let mut plan = PlanPreset::Tiny.plan();
        let source = texts(vec![text.clone()]);
        let all = stages(&plan, &source, TestTokens::default(), &[]);
        let before = all.keys().unwrap();
        assert_eq!(before, all.keys().unwrap());

        plan.training.fine_tuning_steps += 1;
        let after = stages(&plan, &source, TestTokens::default(), &[]).keys().unwrap();
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
        let other = all.keys().unwrap();
        assert!(before.iter().zip(&other).all(|(before, other)| before != other));
    }

    #[test]
    fn threads_are_of_no_consequence() {
        let plan = PlanPreset::Demo.plan();
        let source = texts(Vec::new());
        let threads = [Word::Aside("--threads".into()), Word::Aside("2".into())];
        let (one, two) = (
            stages(&plan, &source, TestTokens::default(), &[]),
            stages(&plan, &source, TestTokens::default(), &threads),
        );
        assert_eq!(one.keys().unwrap(), two.keys().unwrap());
        let cuda =
            stages(&plan, &source, TestTokens::default(), &["--device".into(), "cuda".into()]);
        assert_ne!(one.keys().unwrap(), cuda.keys().unwrap());
    }
}
