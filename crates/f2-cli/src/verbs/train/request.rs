//! The flags that set something, and the configuration they add up to.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use f2_lm::Error;
use f2_lm::config::{ConfigLayers, Origin, Preset, Resolved, TrainConfig};
use f2_lm::run::RunFolder;

use crate::failure::Failure;
use crate::verbs::flags::Objective;

/// Flags that become settings.
#[derive(Args)]
pub(super) struct Settings {
    /// Settings that come with the program.
    #[arg(long, value_enum, env = "F2_PRESET")]
    preset: Option<PresetName>,
    /// A TOML file of settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is minimised.
    #[arg(long, value_enum)]
    objective: Option<Objective>,
    /// End after this many steps.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// End after this many passes over the training split.
    #[arg(long, value_name = "X")]
    epochs: Option<f64>,
    /// End after this many tokens.
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// End after this many minutes; the learning rate follows the clock.
    #[arg(long, value_name = "M")]
    max_minutes: Option<f64>,
    /// Decides the initial weights, the order of the text and dropout.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Any setting by its name, such as `optimiser.learning_rate=1e-3`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetName {
    /// Minutes on two cores.
    Demo,
    /// The paper's English experiment.
    Wikitext103,
    /// The paper's lyrics experiment.
    Lyrics,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Demo => Self::Demo,
            PresetName::Wikitext103 => Self::Wikitext103,
            PresetName::Lyrics => Self::Lyrics,
        }
    }
}

/// A configuration that may still name the vocabulary its author had in mind.
pub(super) struct Requested(pub(super) Resolved);

impl Settings {
    /// Stacks the layers: a resumed run's own settings or a preset, the file, the flags.
    pub(super) fn resolve(&self, resumed: Option<&RunFolder>) -> Result<Requested, Failure> {
        let mut layers = ConfigLayers::new();
        if let Some(run) = resumed {
            layers = layers.file(&run.config_path())?;
        }
        if let Some(preset) = self.preset {
            layers = layers.preset(preset.into());
        }
        if let Some(path) = &self.config {
            layers = layers.file(path)?;
        }
        let flags = self.flags()?;
        let flags = flags.iter().map(|(key, value, words)| (&**key, &**value, &**words));
        Ok(Requested(layers.set(flags)?.resolve()?))
    }

    /// Every flag given, as key, value and the words it was given in.
    fn flags(&self) -> Result<Vec<(String, String, String)>, Failure> {
        let flag = |key: &str, flag: &str, value: String| {
            (key.to_owned(), value.clone(), format!("--{flag} {value}"))
        };
        let objective = self.objective.map(|objective| {
            let name = f2_lm::config::ObjectiveName::from(objective).as_str();
            flag("objective.name", "objective", name.to_owned())
        });
        let given = [
            objective,
            self.steps.map(|steps| flag("budget.steps", "steps", steps.to_string())),
            self.epochs.map(|epochs| flag("budget.epochs", "epochs", epochs.to_string())),
            self.tokens.map(|tokens| flag("budget.tokens", "tokens", tokens.to_string())),
            self.max_minutes
                .map(|minutes| flag("budget.minutes", "max-minutes", minutes.to_string())),
            self.seed.map(|seed| flag("seed", "seed", seed.to_string())),
        ];
        let mut flags: Vec<_> = given.into_iter().flatten().collect();
        for set in &self.set {
            let (key, value) = set.split_once('=').ok_or_else(|| {
                Failure::usage(format!("`--set {set}` has no value"))
                    .advise("write it as `--set key=value`, such as `--set model.layers=6`")
            })?;
            flags.push((key.trim().to_owned(), value.trim().to_owned(), format!("--set {set}")));
        }
        Ok(flags)
    }
}

impl Requested {
    /// Settles the vocabulary: the corpus decides. A preset's number only says what its authors
    /// used; one that the user gave must agree.
    pub(super) fn for_vocabulary(self, corpus: usize) -> Result<TrainConfig, Failure> {
        let Resolved { mut config, origins } = self.0;
        let asked = config.model.vocabulary.filter(|asked| *asked != corpus);
        match (asked, origins.get("model.vocabulary")) {
            (Some(asked), Some(origin)) if !matches!(origin, Origin::Preset(_)) => {
                let place = origin.to_string();
                Err(Error::VocabularyMismatch { place, asked, corpus }.into())
            }
            _ => {
                config.model.vocabulary = Some(corpus);
                Ok(config)
            }
        }
    }
}
