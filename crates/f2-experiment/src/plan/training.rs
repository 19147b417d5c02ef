//! The settings of training, ablations and evaluation.

use std::collections::BTreeMap;

use f2_classes::Method;
use f2_lm::config::Preset;
use serde::{Deserialize, Deserializer};

/// How models are trained.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The preset of `f2 train` to start from: `demo`, `wikitext103` or `lyrics`.
    #[serde(deserialize_with = "preset")]
    pub preset: Preset,
    /// Steps of a model trained from scratch; by default, the preset's limit.
    #[serde(default)]
    pub steps: Option<u64>,
    /// Steps of fine-tuning.
    #[serde(default = "default_fine_tuning")]
    pub fine_tuning_steps: u64,
    /// Further settings by name, such as `"model.layers" = 2`.
    #[serde(default)]
    pub settings: BTreeMap<String, toml::Value>,
}

fn preset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Preset, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
    found.ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        serde::de::Error::custom(format!("there is no preset {name}; there are {names}"))
    })
}

fn default_fine_tuning() -> u64 {
    1_500
}

/// Further F² models, trained with other classes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ablation {
    /// MefMax methods besides `greedy`.
    pub methods: Vec<Method>,
    /// Numbers of classes for equal tokens and equal frequency.
    pub equal_k: Vec<usize>,
    /// Numbers of classes for MefMax, greedy and exact, besides those that the methods choose.
    pub mefmax_k: Vec<usize>,
}

/// How texts are scored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluation {
    /// The number of bootstrap replicates for confidence intervals; 0 for no intervals.
    pub bootstrap: usize,
    /// The number of prefixes, spread over the test split, whose continuations are shown.
    pub samples: usize,
    /// The number of first prefixes of the test split whose continuations are shown as well.
    pub first_samples: usize,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { bootstrap: 0, samples: 4, first_samples: 2 }
    }
}
