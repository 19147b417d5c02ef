//! The flags that become settings of a run.

use std::path::PathBuf;

use clap::Args;
use f2_experiment::TrainTask;
use f2_lm::config::{ObjectiveName, Preset};
use f2_lm::train::{GivenSettings, GivenValue};

use crate::failure::Failure;
use crate::verbs::flags::{objective, preset};

/// Flags that become settings.
#[derive(Args, Debug)]
pub(super) struct Settings {
    /// Built-in settings; without the flag, those that the variable `F2_PRESET` names, unless the
    /// run resumes or starts from a model.
    #[arg(long, value_parser = preset())]
    preset: Option<Preset>,
    /// A TOML file of settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The training objective.
    #[arg(long, value_parser = objective())]
    objective: Option<ObjectiveName>,
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
    /// The seed of the initial weights, the order of the text and dropout.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Any setting by its name, such as `optimiser.learning_rate=1e-3`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// The settings of a stage; none if it resumes a run.
    pub(super) fn of_task(task: &TrainTask<PathBuf>) -> Self {
        let new = !task.resume;
        let preset = task.preset.filter(|_| new);
        let settings = task.settings.iter().filter(|_| new);
        Self {
            preset,
            config: None,
            objective: new.then_some(task.model),
            steps: task.steps.filter(|_| new),
            epochs: None,
            tokens: None,
            max_minutes: None,
            seed: new.then_some(task.seed),
            set: settings.map(|(key, value)| format!("{key}={value}")).collect(),
        }
    }

    /// The settings that the flags give. `F2_PRESET` counts only if `afresh`: a run that is
    /// resumed, or starts from a model, has settings of its own.
    pub(super) fn given(&self, afresh: bool) -> Result<GivenSettings, Failure> {
        let preset = match self.preset {
            None if afresh => preset_of_environment()?,
            preset => preset,
        };
        Ok(GivenSettings { preset, file: self.config.clone(), values: self.values()? })
    }

    /// Every flag given.
    fn values(&self) -> Result<Vec<GivenValue>, Failure> {
        let flag = |key: &str, flag: &str, value: String| {
            let words = format!("--{flag} {value}");
            GivenValue { key: key.to_owned(), value, words }
        };
        let objective = self
            .objective
            .map(|objective| flag("objective.name", "objective", objective.as_str().to_owned()));
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
            let [key, value] = [key, value].map(|part| part.trim().to_owned());
            flags.push(GivenValue { key, value, words: format!("--set {set}") });
        }
        Ok(flags)
    }
}

/// The preset that `F2_PRESET` names; `None` if it is unset or empty.
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
