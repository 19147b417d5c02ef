//! The settings of a run: those its caller gives, on top of what it starts from.

use std::path::PathBuf;

use super::{InitialModel, TrainingCorpus};
use crate::Error;
use crate::config::{ConfigLayers, Origin, Preset, Resolved, TrainConfig, WindowOrder};
use crate::run::RunFolder;

/// Settings the caller of a run gives.
#[derive(Clone, Debug, Default)]
pub struct GivenSettings {
    /// A built-in preset.
    pub preset: Option<Preset>,
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// Single values, above both.
    pub values: Vec<GivenValue>,
}

/// One setting, as its caller gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenValue {
    /// The key with its section, such as `model.layers`.
    pub key: String,
    /// The value in TOML; a bare word is a string.
    pub value: String,
    /// How the caller gave it, such as `--set model.layers=6`, for error messages.
    pub words: String,
}

/// The settings below those given.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// The program's defaults.
    Defaults,
    /// The settings of the resumed run.
    Resumed(&'a RunFolder),
    /// Those of the model the run starts from.
    Initial(&'a InitialModel),
}

impl<'a> From<Option<&'a InitialModel>> for Base<'a> {
    fn from(initial: Option<&'a InitialModel>) -> Self {
        initial.map_or(Base::Defaults, Base::Initial)
    }
}

impl GivenSettings {
    /// A preset and nothing else.
    pub fn preset(preset: Preset) -> Self {
        Self { preset: Some(preset), ..Self::default() }
    }

    /// Adds a value.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        let words = format!("{key} = {value}");
        self.values.push(GivenValue { key: key.to_owned(), value: value.to_owned(), words });
        self
    }

    /// Stacks the layers: the base, the preset, the defaults of fine-tuning, the file, the values.
    pub fn resolve(&self, base: Base<'_>) -> Result<Resolved, Error> {
        let resolved = self.stack(base, false)?;
        let resumed = matches!(base, Base::Resumed(_));
        // Only all layers together tell whether the objective fine-tunes.
        if resumed || !resolved.config.objective.name.fine_tunes() {
            return Ok(resolved);
        }
        self.stack(base, true)
    }

    fn stack(&self, base: Base<'_>, fine_tuning: bool) -> Result<Resolved, Error> {
        let mut layers = match base {
            Base::Defaults => ConfigLayers::new(),
            Base::Resumed(run) => ConfigLayers::new().file(&run.config_path())?,
            Base::Initial(model) => model.settings(ConfigLayers::new())?,
        };
        if let Some(preset) = self.preset {
            layers = layers.preset(preset);
        }
        if fine_tuning {
            layers = layers.fine_tuning();
        }
        if let Some(path) = &self.file {
            layers = layers.file(path)?;
        }
        let values = self.values.iter();
        layers.set(values.map(|given| (&*given.key, &*given.value, &*given.words)))?.resolve()
    }
}

impl Resolved {
    /// Applies what the corpus determines: the vocabulary, and for pairs one pair per row. Another
    /// order given by the caller is kept, and refused later.
    pub fn for_corpus(mut self, corpus: &TrainingCorpus) -> Result<TrainConfig, Error> {
        let asked = matches!(self.origins.get("batch.order"), Some(Origin::Caller(_)));
        if corpus.is_of_pairs() && !asked {
            self.config.batch.order = WindowOrder::Documents;
        }
        self.for_vocabulary(corpus.record.vocabulary)
    }

    /// Sets the vocabulary to that of the corpus. A preset's number is only what its authors used;
    /// one that the caller gave must agree.
    pub fn for_vocabulary(self, corpus: usize) -> Result<TrainConfig, Error> {
        let Self { mut config, origins } = self;
        let asked = config.model.vocabulary.filter(|asked| *asked != corpus);
        match (asked, origins.get("model.vocabulary")) {
            (Some(asked), Some(origin)) if !matches!(origin, Origin::Preset(_)) => {
                let place = origin.to_string();
                Err(Error::VocabularyMismatch { place, asked, corpus })
            }
            _ => {
                config.model.vocabulary = Some(corpus);
                Ok(config)
            }
        }
    }
}
