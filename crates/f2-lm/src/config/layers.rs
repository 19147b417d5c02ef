//! Layers of settings: the last one that gives a value wins, and every value has its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};

use super::lines::{Leaf, leaves, line_of};
use super::spelling::{known_elsewhere, nearest};
use super::{BudgetConfig, Preset, TrainConfig, range};
use crate::Error;

/// Where the value of a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A built-in preset.
    Preset(Preset),
    /// A line of a file, counted from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the key.
        line: usize,
    },
    /// A default of fine-tuning, which overrides the layers below it.
    FineTuning,
    /// The caller, in the caller's words, such as `--set model.layers=6`.
    Caller(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(preset) => write!(formatter, "preset {preset}"),
            Self::File { path, line } => write!(formatter, "{}, line {line}", path.display()),
            Self::FineTuning => formatter.write_str("default of fine-tuning"),
            Self::Caller(words) => formatter.write_str(words),
        }
    }
}

/// One value given to one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key with its section, such as `model.layers`.
    pub key: String,
    /// The value, not yet checked.
    pub value: Value,
    /// Who gave it.
    pub origin: Origin,
}

/// A configuration together with the origin of every value that is not a default.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The settings in force.
    pub config: TrainConfig,
    /// Where each value that was given came from, by key.
    pub origins: BTreeMap<String, Origin>,
}

/// Layers of settings, lowest first: a preset, a file, the caller's own.
///
/// A layer that names any limit of `[budget]` replaces all limits below it, so that asking for
/// 100 steps never leaves a preset's epochs in force.
///
/// ```
/// use f2_lm::config::{ConfigLayers, Preset};
///
/// let resolved = ConfigLayers::new()
///     .preset(Preset::Wikitext103)
///     .set([("model.layers", "6", "--set model.layers=6")])?
///     .resolve()?;
/// assert_eq!(resolved.config.model.layers, 6);
/// assert_eq!(resolved.config.model.width, 512);
/// # Ok::<(), f2_lm::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConfigLayers {
    settings: BTreeMap<String, Setting>,
}

impl ConfigLayers {
    /// No layers: every setting at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a preset.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        let lines = leaves(preset.text()).expect("presets are well-formed TOML");
        self.add(lines.into_iter().map(|leaf| setting(leaf, |_| Origin::Preset(preset))).collect());
        self
    }

    /// Adds what fine-tuning changes of the settings so far: a tenth of their learning rate, which
    /// neither rises nor falls, and [`FINE_TUNING_STEPS`] in place of their limits.
    #[must_use]
    pub fn fine_tuning(mut self) -> Self {
        let below = self.settings.get("optimiser.learning_rate").map(|setting| &setting.value);
        let below = match below {
            Some(Value::Float(rate)) => *rate,
            Some(Value::Integer(rate)) => *rate as f64,
            _ => TrainConfig::default().optimiser.learning_rate,
        };
        let layer = [
            ("optimiser.learning_rate", Value::Float(tenth(below))),
            ("schedule.shape", Value::String("constant".to_owned())),
            ("schedule.warmup_steps", Value::Integer(0)),
            ("budget.steps", Value::Integer(FINE_TUNING_STEPS)),
        ];
        self.add(
            layer
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .map(|(key, value)| Setting { key, value, origin: Origin::FineTuning })
                .collect(),
        );
        self
    }

    /// Adds a TOML file.
    pub fn file(mut self, path: &Path) -> Result<Self, Error> {
        let text = f2_files::read_text(path)?;
        let lines = leaves(&text).map_err(|error| Error::ConfigSyntax {
            path: path.to_path_buf(),
            line: error.span().map_or(1, |span| line_of(&text, span.start)),
            reason: error.message().replace('\n', ", "),
        })?;
        let origin = |line| Origin::File { path: path.to_path_buf(), line };
        let layer: Vec<Setting> = lines.into_iter().map(|leaf| setting(leaf, origin)).collect();
        self.check_and_add(layer)?;
        Ok(self)
    }

    /// Adds the caller's settings as one layer, each a key, a value as TOML would write it (a
    /// bare word is a string) and the words it was given in.
    pub fn set<'a>(
        mut self,
        settings: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Result<Self, Error> {
        let layer = settings.into_iter().map(|(key, value, words)| Setting {
            key: key.to_owned(),
            value: parse_value(value),
            origin: Origin::Caller(words.to_owned()),
        });
        self.check_and_add(layer.collect())?;
        Ok(self)
    }

    /// Checks every value and gives the configuration they make together.
    pub fn resolve(self) -> Result<Resolved, Error> {
        let mut table = Table::new();
        for setting in self.settings.values() {
            insert(&mut table, &setting.key, setting.value.clone());
        }
        let config = TrainConfig::deserialize(table).expect("each value was tried when added");
        if let Err(violation) = range::check(&config) {
            let origin = self.settings.get(violation.key).map(|setting| setting.origin.clone());
            return Err(Error::ConfigValue {
                key: violation.key.to_owned(),
                place: place(origin.as_ref()),
                reason: violation.reason,
            });
        }
        let origins = self.settings.into_iter().map(|(key, setting)| (key, setting.origin));
        Ok(Resolved { config, origins: origins.collect() })
    }

    fn check_and_add(&mut self, layer: Vec<Setting>) -> Result<(), Error> {
        for setting in &layer {
            check_key(setting)?;
            check_type(setting)?;
        }
        self.add(layer);
        Ok(())
    }

    fn add(&mut self, layer: Vec<Setting>) {
        let limits = |key: &str| key.starts_with("budget.");
        if layer.iter().any(|setting| limits(&setting.key)) {
            self.settings.retain(|key, _| !limits(key));
        }
        self.settings.extend(layer.into_iter().map(|setting| (setting.key.clone(), setting)));
    }
}

/// Steps of fine-tuning, as in the paper.
pub const FINE_TUNING_STEPS: i64 = 1_500;

/// A tenth, to as many digits as were meant: `3e-4 / 10.0` alone is `2.9999999999999997e-5`.
fn tenth(rate: f64) -> f64 {
    format!("{:.14e}", rate / 10.0).parse().unwrap_or(rate / 10.0)
}

/// Every key there is, with its section.
pub(crate) fn known_keys() -> Vec<String> {
    let mut config = TrainConfig::default();
    config.model.vocabulary = Some(0);
    config.budget =
        BudgetConfig { steps: Some(0), epochs: Some(0.0), tokens: Some(0), minutes: Some(0.0) };
    flatten(&config).into_keys().collect()
}

/// Every setting with its value as TOML writes it, none where it is not set; those without a
/// section first, as TOML wants them.
pub fn every_setting(config: &TrainConfig) -> Vec<(String, Option<String>)> {
    let mut values = flatten(config);
    let mut keys = known_keys();
    keys.sort_by_key(|key| (key.contains('.'), key.clone()));
    keys.into_iter()
        .map(|key| {
            let value = values.remove(&key);
            (key, value)
        })
        .collect()
}

/// The values of a configuration by key, each as TOML writes it.
pub(crate) fn flatten(config: &TrainConfig) -> BTreeMap<String, String> {
    let table = Table::try_from(config).expect("a configuration is a table");
    let mut values = BTreeMap::new();
    for (name, value) in table {
        match value {
            Value::Table(section) => values.extend(
                section
                    .into_iter()
                    .map(|(key, value)| (format!("{name}.{key}"), value.to_string())),
            ),
            value => drop(values.insert(name, value.to_string())),
        }
    }
    values
}

fn setting(leaf: Leaf, origin: impl Fn(usize) -> Origin) -> Setting {
    Setting { key: leaf.key, value: leaf.value, origin: origin(leaf.line) }
}

fn check_key(setting: &Setting) -> Result<(), Error> {
    let keys = known_keys();
    if keys.contains(&setting.key) {
        return Ok(());
    }
    let section = keys.iter().any(|key| key.starts_with(&format!("{}.", setting.key)));
    let place = place(Some(&setting.origin));
    if section {
        let reason = "it is a section with keys of its own".to_owned();
        return Err(Error::ConfigValue { key: setting.key.clone(), place, reason });
    }
    let nearest = known_elsewhere(&setting.key)
        .or_else(|| nearest(&setting.key, keys.iter().map(String::as_str)))
        .map(str::to_owned);
    Err(Error::UnknownKey { key: setting.key.clone(), place, nearest })
}

/// Tries one value against the defaults, so that a mistake is blamed on the line that made it.
fn check_type(setting: &Setting) -> Result<(), Error> {
    let mut table = Table::new();
    insert(&mut table, &setting.key, setting.value.clone());
    match TrainConfig::deserialize(table) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::ConfigValue {
            key: setting.key.clone(),
            place: place(Some(&setting.origin)),
            reason: in_words(error.message()),
        }),
    }
}

/// The parser's message, with the names of Rust's types in words.
fn in_words(message: &str) -> String {
    let words = [("usize", "a whole number"), ("u64", "a whole number"), ("f64", "a number")];
    words.iter().fold(message.to_owned(), |message, (name, words)| {
        message.replace(&format!("expected {name}"), &format!("expected {words}"))
    })
}

fn place(origin: Option<&Origin>) -> String {
    origin.map_or_else(|| "default".to_owned(), Origin::to_string)
}

fn insert(table: &mut Table, key: &str, value: Value) {
    let Some((section, name)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(section) = section {
        section.insert(name.to_owned(), value);
    }
}

fn parse_value(text: &str) -> Value {
    let as_toml = format!("value = {text}").parse::<Table>().ok();
    as_toml
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ScheduleShape;

    fn file(text: &str) -> Result<Resolved, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        ConfigLayers::new().preset(Preset::Demo).file(&path)?.resolve()
    }

    fn complaint(text: &str) -> String {
        let message = file(text).unwrap_err().to_string();
        // The folder is another one every time.
        let (before, after) = message.split_once('/').map_or((message.as_str(), ""), |parts| parts);
        let after = after.split_once("mine.toml").map_or("", |parts| parts.1);
        format!("{before}mine.toml{after}")
    }

    #[test]
    fn every_preset_resolves() {
        for preset in Preset::ALL {
            ConfigLayers::new().preset(preset).resolve().unwrap();
        }
    }

    #[test]
    fn mistakes_name_key_line_and_reason() {
        let cases = [
            "[model]\nlayers = 2\n\n[optimizer]\nlearning_rate = 1e-3\n",
            "[model]\nlayerz = 2\n",
            "learning_rate = 3\n",
            "[model]\nlayers = \"four\"\n",
            "[model]\nlayers = -4\n",
            "[objective]\nname = \"ml\"\n",
            "model = 3\n",
            "[model]\nheads = 3\n",
            "[batch]\n\nmicro = 3\n",
            "[optimiser]\nlearning_rate = nan\n",
            "[model]\nlayers = 2\nlayers = 3\n",
            "[model\nlayers = 2\n",
            "[budget]\nsteps = 0\n",
            "[unlikelihood]\nngram = 0\n",
            "[objective]\nname = \"unlikelihood-sequence\"\n[unlikelihood]\ncontinuation = 79\n",
            "[face]\nvariant = \"oprah\"\n",
        ];
        let complaints: Vec<String> = cases.iter().map(|text| complaint(text)).collect();
        insta::assert_snapshot!(complaints.join("\n"));
    }

    #[test]
    fn the_last_layer_wins_and_its_limits_replace_all_below() {
        let resolved = ConfigLayers::new()
            .preset(Preset::Wikitext103)
            .set([("budget.steps", "100", "--steps 100"), ("seed", "7", "--seed 7")])
            .unwrap()
            .resolve()
            .unwrap();
        assert_eq!(resolved.config.budget.steps, Some(100));
        assert_eq!(resolved.config.budget.epochs, None);
        assert_eq!(resolved.config.seed, 7);
        assert_eq!(resolved.origins["model.width"], Origin::Preset(Preset::Wikitext103));
        assert_eq!(resolved.origins["seed"].to_string(), "--seed 7");
    }

    #[test]
    fn fine_tuning_takes_a_tenth_of_what_is_below_and_yields_to_what_is_above() {
        let resolved = ConfigLayers::new()
            .preset(Preset::Wikitext103)
            .fine_tuning()
            .set([("schedule.warmup_steps", "7", "--set schedule.warmup_steps=7")])
            .unwrap()
            .resolve()
            .unwrap();
        assert_eq!(resolved.config.optimiser.learning_rate, 1e-5);
        assert_eq!(
            (resolved.config.budget.steps, resolved.config.budget.epochs),
            (Some(1_500), None)
        );
        assert_eq!(resolved.config.schedule.warmup_steps, 7);
        assert_eq!(resolved.config.schedule.shape, ScheduleShape::Constant);
        assert_eq!(resolved.origins["optimiser.learning_rate"], Origin::FineTuning);
        let from_default = ConfigLayers::new().fine_tuning().resolve().unwrap().config;
        assert_eq!(from_default.optimiser.learning_rate, 3e-5);
    }

    #[test]
    fn a_resolved_configuration_reads_back_the_same() {
        let resolved = ConfigLayers::new().preset(Preset::Lyrics).resolve().unwrap();
        let text = toml::to_string(&resolved.config).unwrap();
        assert_eq!(file(&text).unwrap().config, resolved.config);
    }

    /// TOML's whole numbers end at 2⁶³ - 1, seeds at 2⁶⁴ - 1.
    #[test]
    fn any_seed_can_be_given_written_and_read() {
        for seed in [0, 7, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            let given = seed.to_string();
            let layers = ConfigLayers::new().set([("seed", given.as_str(), "--seed")]).unwrap();
            let config = layers.resolve().unwrap().config;
            assert_eq!(config.seed, seed);
            assert_eq!(file(&toml::to_string(&config).unwrap()).unwrap().config.seed, seed);
            assert!(flatten(&config)["seed"].contains(&given));
        }
        for wrong in ["-1", "18446744073709551616", "1.5", "one"] {
            let refused = ConfigLayers::new().set([("seed", wrong, "--seed")]).unwrap_err();
            assert!(refused.to_string().contains("expected a whole number"), "{refused}");
        }
    }

    #[test]
    fn every_setting_elsewhere_leads_to_one_of_ours() {
        let keys = known_keys();
        for name in ["lr", "batch_size", "epochs", "dropout", "n_head", "warmup", "seq_len", "loss"]
        {
            let refused = ConfigLayers::new().set([(name, "1", "--set")]).unwrap_err();
            let Error::UnknownKey { nearest: Some(key), .. } = &refused else {
                panic!("{refused}")
            };
            assert!(keys.contains(key), "{name}: {key}");
        }
    }

    #[test]
    fn every_key_of_a_full_configuration_is_known() {
        assert!(known_keys().contains(&"budget.minutes".to_owned()));
        assert!(known_keys().contains(&"seed".to_owned()));
        assert!(known_keys().contains(&"model.vocabulary".to_owned()));
    }
}
