//! The folder of a run: its settings, manifest and checkpoints.

use std::fmt;
use std::path::{Path, PathBuf};

use f2_files::{Lock, ReadError, WriteError, disk, read_text, regular_file, write_text_atomically};

use super::{Manifest, checkpoint, settings_file};
use crate::Error;
use crate::config::{ConfigLayers, TrainConfig, flatten};

/// Its settings.
pub const CONFIG: &str = "config.toml";
const MANIFEST: &str = "manifest.json";
/// Its log.
pub const EVENTS: &str = "events.jsonl";
const TENSORBOARD: &str = "tensorboard";
/// The folder of its checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
const RANKS: &str = "ranks";

/// Keys that determine the parameters: if one changes, no checkpoint can be loaded.
const SHAPING: [&str; 8] = [
    "model.layers",
    "model.width",
    "model.heads",
    "model.feed_forward",
    "model.tied",
    "model.vocabulary",
    "batch.sequence",
    "objective.name",
];

/// A run on the disk.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Its settings.
    pub config: TrainConfig,
    /// The corpus, classes and model it was made from.
    pub manifest: Manifest,
}

impl RunFolder {
    /// Locks a folder, to write the run in it or to start one. Leftovers of killed writers are
    /// removed.
    pub fn lock(path: &Path) -> Result<Lock, Error> {
        let lock = Lock::inside(path)?;
        f2_files::sweep(path);
        f2_files::sweep(&path.join(CHECKPOINTS));
        Ok(lock)
    }

    /// Starts a run in a folder without one, and without any file that a run would overwrite.
    pub fn create(path: &Path, config: TrainConfig, manifest: Manifest) -> Result<Self, Error> {
        if path.join(CONFIG).exists() {
            return Err(Error::RunExists { path: path.to_path_buf() });
        }
        if let Some(name) = foreign_file(path) {
            return Err(Error::FolderTaken { path: path.to_path_buf(), name });
        }
        let checkpoints = path.join(CHECKPOINTS);
        disk::create_folders(&checkpoints).map_err(WriteError::of(&checkpoints))?;
        let run = Self { path: path.to_path_buf(), config, manifest };
        let manifest = serde_json::to_string_pretty(&run.manifest).expect("plain text and numbers");
        run.write(MANIFEST, &manifest)?;
        run.write_config()?;
        Ok(run)
    }

    /// Opens the run in a folder.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let config_path = path.join(CONFIG);
        if !config_path.exists() {
            return Err(Error::NotARun { path: path.to_path_buf() });
        }
        let text = read_text(regular_file(&config_path)?)?;
        if let Some(reason) = settings_file::difference(&text) {
            return Err(Error::BadRun { path: config_path, reason });
        }
        let config = ConfigLayers::new().file(&config_path)?.resolve()?.config;
        let manifest_path = path.join(MANIFEST);
        let text = read_text(regular_file(&manifest_path)?)?;
        let manifest = serde_json::from_str(&text)
            .map_err(|error| Error::BadRun { path: manifest_path, reason: error.to_string() })?;
        Ok(Self { path: path.to_path_buf(), config, manifest })
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file its settings are in.
    pub fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// Where its checkpoints are.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// The log of its events.
    pub fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    /// The log of a rank other than 0.
    pub fn rank_log(&self, rank: usize) -> PathBuf {
        self.path.join(RANKS).join(format!("rank-{rank}.log"))
    }

    /// Where its `TensorBoard` files are.
    pub fn tensorboard(&self) -> PathBuf {
        self.path.join(TENSORBOARD)
    }

    /// The newest checkpoint; `None` if the run ended before its first.
    pub fn latest_checkpoint(&self) -> Result<Option<PathBuf>, Error> {
        let folder = self.checkpoints();
        let steps = checkpoint::steps(&folder).map_err(ReadError::of(&folder))?;
        Ok(steps.last().map(|step| checkpoint::path(&folder, *step)))
    }

    /// A run that another process writes.
    pub(crate) fn written_elsewhere(path: &Path, config: TrainConfig, manifest: Manifest) -> Self {
        Self { path: path.to_path_buf(), config, manifest }
    }

    /// Changes the settings. Each one that differs must be among `allowed`, by its key or its
    /// section.
    pub fn change_config(&mut self, config: TrainConfig, allowed: &[String]) -> Result<(), Error> {
        if self.adopt_config(config, allowed)? { self.write_config() } else { Ok(()) }
    }

    /// Like [`change_config`](Self::change_config), without writing. Returns whether any differ.
    pub(crate) fn adopt_config(
        &mut self,
        config: TrainConfig,
        allowed: &[String],
    ) -> Result<bool, Error> {
        let differences = Differences::between(&self.config, &config);
        if let Some(shaping) = differences.shaping() {
            return Err(Error::ShapeChanged { differences: shaping });
        }
        if let Some(refused) = differences.not_among(allowed) {
            return Err(Error::ConfigChanged { differences: refused });
        }
        self.config = config;
        Ok(!differences.0.is_empty())
    }

    pub(crate) fn write_config(&self) -> Result<(), Error> {
        let settings = toml::to_string(&self.config).expect("a configuration is TOML");
        self.write(CONFIG, &settings_file::sealed(&settings))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        Ok(write_text_atomically(&self.path.join(name), text)?)
    }
}

/// A file of another kind of folder that a run would overwrite, such as a corpus's manifest. The
/// manifest of a run that was killed while it was created does not count.
fn foreign_file(path: &Path) -> Option<&'static str> {
    let own = |text: String| serde_json::from_str::<Manifest>(&text).is_ok();
    [MANIFEST, EVENTS, TENSORBOARD].into_iter().find(|name| {
        let path = path.join(name);
        let text = || regular_file(&path).and_then(read_text);
        path.exists() && !(*name == MANIFEST && text().is_ok_and(own))
    })
}

/// Settings that differ: key, value before, value after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences(pub Vec<(String, String, String)>);

impl Differences {
    /// The differences between two configurations.
    pub fn between(before: &TrainConfig, after: &TrainConfig) -> Self {
        let (before, after) = (flatten(before), flatten(after));
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        let value = |of: Option<&String>| of.map_or_else(|| "unset".to_owned(), String::clone);
        Self(
            keys.into_iter()
                .filter(|key| before.get(*key) != after.get(*key))
                .map(|key| (key.clone(), value(before.get(key)), value(after.get(key))))
                .collect(),
        )
    }

    fn shaping(&self) -> Option<Self> {
        self.filtered(|key| SHAPING.contains(&key))
    }

    fn not_among(&self, allowed: &[String]) -> Option<Self> {
        self.filtered(|key| {
            let section = key.split_once('.').map_or(key, |(section, _)| section);
            !allowed.iter().any(|allowed| allowed == key || allowed == section)
        })
    }

    fn filtered(&self, keep: impl Fn(&str) -> bool) -> Option<Self> {
        let kept: Vec<_> = self.0.iter().filter(|(key, ..)| keep(key)).cloned().collect();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// The keys that differ.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, ..)| key.as_str())
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(key, before, after)| format!("{key}: {before} → {after}"));
        formatter.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::CorpusRecord;

    fn run(folder: &Path) -> RunFolder {
        let corpus = CorpusRecord {
            path: "corpus".into(),
            counts_sha256: "c".into(),
            tokenizer_sha256: "t".into(),
            vocabulary: 61,
            train_tokens: 1_000,
            valid_tokens: 100,
        };
        let manifest = Manifest::new(corpus, None, 7, "cpu", 2);
        RunFolder::create(folder, TrainConfig::default(), manifest).unwrap()
    }

    #[test]
    fn a_run_opens_as_it_was_created() {
        let folder = tempfile::tempdir().unwrap();
        let created = run(folder.path());
        let opened = RunFolder::open(folder.path()).unwrap();
        assert_eq!(
            (opened.config, opened.manifest),
            (created.config.clone(), created.manifest.clone())
        );
        let again = RunFolder::create(folder.path(), created.config, created.manifest);
        assert!(matches!(again, Err(Error::RunExists { .. })));
        assert!(matches!(opened.path.join("x"), path if RunFolder::open(&path).is_err()));
    }

    #[test]
    fn settings_that_were_changed_behind_its_back_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let text = fs::read_to_string(run.config_path()).unwrap();
        fs::write(run.config_path(), text.replacen("layers = 4", "layers = 5", 1)).unwrap();
        let refused = RunFolder::open(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("its settings are not what the run wrote there"), "{refused}");
    }

    #[test]
    fn changes_must_be_allowed_and_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = run(folder.path());
        let mut longer = run.config.clone();
        longer.budget.steps = Some(100);
        longer.optimiser.learning_rate = 1e-3;
        let refused = run.change_config(longer.clone(), &["budget".to_owned()]).unwrap_err();
        insta::assert_snapshot!(refused, @"this run was trained with other settings: optimiser.learning_rate: 0.0003 → 0.001");
        let allowed = ["budget.steps".to_owned(), "optimiser".to_owned()];
        run.change_config(longer.clone(), &allowed).unwrap();
        assert_eq!(RunFolder::open(folder.path()).unwrap().config, longer);
        longer.model.layers = 9;
        let refused = run.change_config(longer, &["model".to_owned()]).unwrap_err();
        insta::assert_snapshot!(refused, @"settings that determine the model's shape cannot change within a run: model.layers: 4 → 9");
    }
}
