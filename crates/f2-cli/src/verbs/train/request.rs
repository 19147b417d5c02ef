//! The flags that set something, and the configuration they add up to.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use f2_experiment::TrainTask;
use f2_lm::Error;
use f2_lm::config::{ConfigLayers, Origin, Preset, Resolved, TrainConfig};
use f2_lm::run::RunFolder;
use f2_lm::train::InitialModel;

use crate::failure::Failure;
use crate::verbs::flags::Objective;

/// Flags that become settings.
#[derive(Args, Debug)]
pub(super) struct Settings {
    /// Settings that come with the program; without it those the variable `F2_PRESET` names, where a
    /// run starts afresh.
    #[arg(long, value_enum)]
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

#[derive(Clone, Copy, Debug, ValueEnum)]
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

/// What lies below the preset.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// The program's defaults.
    Defaults,
    /// The settings of the run that goes on.
    Resumed(&'a RunFolder),
    /// Those of the model the run starts from.
    Initial(&'a InitialModel),
}

impl<'a> From<Option<&'a InitialModel>> for Base<'a> {
    fn from(initial: Option<&'a InitialModel>) -> Self {
        initial.map_or(Base::Defaults, Base::Initial)
    }
}

/// A configuration that may still name the vocabulary its author had in mind.
pub(super) struct Requested(pub(super) Resolved);

impl Settings {
    /// The settings of a stage; none where a run is resumed.
    pub(super) fn of_task(task: &TrainTask<PathBuf>) -> Self {
        let new = !task.resume;
        let preset = task.preset.filter(|_| new);
        let settings = task.settings.iter().filter(|_| new);
        Self {
            preset: preset.and_then(|preset| PresetName::from_str(preset.name(), false).ok()),
            config: None,
            objective: Objective::from_str(task.model.objective(), false).ok().filter(|_| new),
            steps: task.steps.filter(|_| new),
            epochs: None,
            tokens: None,
            max_minutes: None,
            seed: new.then_some(task.seed),
            set: settings.map(|(key, value)| format!("{key}={value}")).collect(),
        }
    }

    /// Stacks the layers: the base, the preset, what fine-tuning changes of both, the file, the
    /// flags.
    pub(super) fn resolve(&self, base: Base<'_>) -> Result<Requested, Failure> {
        let resolved = self.stack(base, false)?;
        let resumed = matches!(base, Base::Resumed(_));
        // Whether it is fine-tuning is known only when all layers are.
        if resumed || !resolved.config.objective.name.fine_tunes() {
            return Ok(Requested(resolved));
        }
        Ok(Requested(self.stack(base, true)?))
    }

    fn stack(&self, base: Base<'_>, fine_tuning: bool) -> Result<Resolved, Failure> {
        let mut layers = ConfigLayers::new();
        layers = match base {
            Base::Defaults => layers,
            Base::Resumed(run) => layers.file(&run.config_path())?,
            Base::Initial(model) => model.settings(layers)?,
        };
        if let Some(preset) = self.preset(base)? {
            layers = layers.preset(preset);
        }
        if fine_tuning {
            layers = layers.fine_tuning();
        }
        if let Some(path) = &self.config {
            layers = layers.file(path)?;
        }
        let flags = self.flags()?;
        let flags = flags.iter().map(|(key, value, words)| (&**key, &**value, &**words));
        Ok(layers.set(flags)?.resolve()?)
    }

    /// The preset that was named. That of the environment is for runs that start afresh: a run that
    /// goes on, or starts from a model, has settings already.
    fn preset(&self, base: Base<'_>) -> Result<Option<Preset>, Failure> {
        match (self.preset, base) {
            (Some(preset), _) => Ok(Some(preset.into())),
            (None, Base::Defaults) => preset_of_environment(),
            (None, Base::Resumed(_) | Base::Initial(_)) => Ok(None),
        }
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

/// The preset that `F2_PRESET` names; none where it is unset or empty.
fn preset_of_environment() -> Result<Option<Preset>, Failure> {
    let name = std::env::var_os("F2_PRESET").unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let name = name.to_string_lossy();
    let named = Preset::ALL.into_iter().find(|preset| preset.name() == name);
    named.map(Some).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        Failure::usage(format!("F2_PRESET is `{name}`, and there is no such preset"))
            .advise(format!("unset it, or set it to one of these: {names}"))
    })
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
