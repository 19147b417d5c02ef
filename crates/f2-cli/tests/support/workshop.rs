//! A corpus to train on, and training runs of a second.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Folder, Run, invented_text, small_settings};

/// A folder with a corpus, its classes and a configuration.
pub struct Workshop(pub Folder);

impl Workshop {
    pub fn new() -> Self {
        let workshop = Self(Folder::new());
        workshop.0.write("text.txt", invented_text(175));
        let often = "[checkpoint]\nevery_steps = 4\n";
        workshop.0.write("small.toml", small_settings(16) + often);
        workshop.prepare("text.txt", "corpus");
        workshop
    }

    pub fn prepare(&self, text: &str, corpus: &str) {
        let vocabulary = ["--documents", "lines", "--vocab-size", "300", "--end-of-text"];
        let prepared = self.0.f2(&[&["prepare", text, "--out", corpus], &vocabulary[..]].concat());
        assert_eq!(prepared.code, 0, "{}", prepared.stderr);
        let cut = self.0.f2(&["classes", corpus]);
        assert_eq!(cut.code, 0, "{}", cut.stderr);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    pub fn train(&self, more: &[&str]) -> Run {
        self.0.f2(&[&["train", "corpus", "--config", "small.toml"], more].concat())
    }

    /// The command, exit code and message of a command that must fail, without the folder's path.
    pub fn refusal(&self, arguments: &[&str]) -> String {
        let Run { code, stderr, .. } = self.0.f2(arguments);
        assert_ne!(code, 0, "{arguments:?}");
        let folder = self.path("").canonicalize().unwrap();
        let text = stderr.replace(&folder.display().to_string(), "HERE");
        format!("$ f2 {}\n[exit code {code}]\n{text}", arguments.join(" "))
    }
}

/// The parameters and the moments of a checkpoint.
pub fn tensors(run: &Path, step: u64) -> [Vec<u8>; 2] {
    let folder = run.join(format!("checkpoints/step-{step}"));
    ["model.safetensors", "optimizer.safetensors"].map(|name| fs::read(folder.join(name)).unwrap())
}

/// The step of the newest checkpoint.
pub fn newest(run: &Path) -> Option<u64> {
    let entries = fs::read_dir(run.join("checkpoints")).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("step-")?.parse().ok()).max()
}
