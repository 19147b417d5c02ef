//! Layers of settings: the last one that gives a value wins, and the origin of every value is kept.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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
    /// The caller; the text it was given in, such as `--set model.layers=6`.
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
    /// Its source.
    pub origin: Origin,
}

/// A configuration together with the origin of every value that is not a default.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The resulting settings.
    pub config: TrainConfig,
    /// Where each value that was given came from, by key.
    pub origins: BTreeMap<String, Origin>,
}

/// Layers of settings, lowest first: a preset, a file, the caller's own.
///
/// A layer that sets any limit of `[budget]` replaces all limits below it, so that a limit of 100
/// steps is not combined with a preset's epochs.
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

    /// Adds the defaults of fine-tuning: a tenth of the learning rate so far, constant and without
    /// warm-up, and [`FINE_TUNING_STEPS`] in place of the limits so far.
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

    /// Adds the caller's settings as one layer: each a key, a value in TOML (a bare word is a
    /// string) and the text it was given in, such as `--set model.layers=6`.
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

    /// Merges the layers into a configuration, and checks it.
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

/// A tenth, rounded to 15 digits: `3e-4 / 10.0` alone is `2.9999999999999997e-5`.
fn tenth(rate: f64) -> f64 {
    format!("{:.14e}", rate / 10.0).parse().unwrap_or(rate / 10.0)
}

/// Every valid key, with its section.
pub(crate) fn known_keys() -> &'static [String] {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut config = TrainConfig::default();
        (config.model.vocabulary, config.batch.shards) = (Some(0), 1);
        config.batch.recompute = true;
        config.budget =
            BudgetConfig { steps: Some(0), epochs: Some(0.0), tokens: Some(0), minutes: Some(0.0) };
        flatten(&config).into_keys().collect()
    });
    &KEYS
}

/// Every setting with its value in TOML, `None` if it is not set; those without a section first,
/// as TOML requires.
pub fn every_setting(config: &TrainConfig) -> Vec<(String, Option<String>)> {
    let mut values = flatten(config);
    let mut keys = known_keys().to_vec();
    keys.sort_by_key(|key| (key.contains('.'), key.clone()));
    keys.into_iter()
        .map(|key| {
            let value = values.remove(&key);
            (key, value)
        })
        .collect()
}

/// The values of a configuration by key, in TOML.
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

/// Tries one value together with the defaults, so that an error names the line at fault.
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

/// The parser's message, with the names of Rust's types replaced by words.
pub(crate) fn in_words(message: &str) -> String {
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
mod tests;
