//! What an experiment is to do, as a TOML file says it.

mod generation;
mod preset;
mod transfer;

use std::collections::BTreeMap;
use std::path::Path;

use f2_report::PaperSet;
use f2_report::results::ClassRule;
use serde::{Deserialize, Serialize};

pub use generation::Generation;
pub use preset::PlanPreset;
pub use transfer::Transfer;

use crate::Error;

/// What an experiment is to do. Everything has a default but the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What the report is called; made from the name of the text where it is missing.
    #[serde(default)]
    pub title: Option<String>,
    /// The paper's set whose numbers stand beside ours.
    #[serde(default)]
    pub paper: Option<PaperSet>,
    /// Tokens to learn, where the corpus is still text.
    #[serde(default = "default_vocabulary")]
    pub vocabulary: usize,
    /// Decides initial weights, order of text, dropout and draws.
    #[serde(default)]
    pub seed: u64,
    /// What is compared, in the order of the tables.
    pub models: Vec<Model>,
    /// How the models are trained.
    pub training: Training,
    /// How they continue prefixes.
    #[serde(default)]
    pub generation: Generation,
    /// What else is cut off and tried.
    #[serde(default)]
    pub ablation: Ablation,
    /// What is pretrained on another text, where anything is.
    #[serde(default)]
    pub transfer: Option<Transfer>,
    /// How the texts are scored.
    #[serde(default)]
    pub evaluation: Evaluation,
}

fn default_vocabulary() -> usize {
    30_000
}

/// A model of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Maximum likelihood.
    Mle,
    /// Frequency-aware cross-entropy, fine-tuned from maximum likelihood.
    Face,
    /// Token-level unlikelihood.
    Unlikelihood,
    /// Sequence-level unlikelihood, fine-tuned from the token-level one.
    UnlikelihoodSequence,
    /// F²-Softmax.
    F2,
}

impl Model {
    /// What `f2 train --objective` calls it.
    pub fn objective(self) -> &'static str {
        match self {
            Self::Mle => "mle",
            Self::Face => "face",
            Self::Unlikelihood => "unlikelihood",
            Self::UnlikelihoodSequence => "unlikelihood-sequence",
            Self::F2 => "f2",
        }
    }

    /// What the paper's tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mle => "MLE",
            Self::Face => "FACE",
            Self::Unlikelihood => "UL-token",
            Self::UnlikelihoodSequence => "UL-token+seq",
            Self::F2 => "F²-Softmax",
        }
    }

    /// The model it is fine-tuned from, where it is not trained from scratch.
    pub fn starts_from(self) -> Option<Self> {
        match self {
            Self::Face => Some(Self::Mle),
            Self::UnlikelihoodSequence => Some(Self::Unlikelihood),
            Self::Mle | Self::Unlikelihood | Self::F2 => None,
        }
    }
}

/// How models are trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The settings of `f2 train` it begins with: `demo`, `wikitext103` or `lyrics`.
    pub preset: String,
    /// Steps of a model trained from scratch; the preset's own limit where it is missing.
    #[serde(default)]
    pub steps: Option<u64>,
    /// Steps of fine-tuning.
    #[serde(default = "default_fine_tuning")]
    pub fine_tuning_steps: u64,
    /// Any setting by its name, such as `"model.layers" = 2`.
    #[serde(default)]
    pub settings: BTreeMap<String, toml::Value>,
}

fn default_fine_tuning() -> u64 {
    1_500
}

/// F² models that are trained with other classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ablation {
    /// MefMax methods beside `greedy`.
    pub methods: Vec<ClassRule>,
    /// Numbers of classes for equal tokens and equal frequency.
    pub equal_k: Vec<usize>,
}

/// How texts are scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluation {
    /// How often texts are drawn for confidence intervals; 0 for none.
    pub bootstrap: usize,
    /// Prefixes whose continuations are shown.
    pub samples: usize,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { bootstrap: 0, samples: 4 }
    }
}

impl Plan {
    /// Reads a plan.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = f2_files::read_text(path)?;
        let mut plan = Self::parse(&text, &path.display().to_string())?;
        if let Some(transfer) = &mut plan.transfer {
            transfer.resolve(path.parent().unwrap_or_else(|| Path::new("")));
        }
        Ok(plan)
    }

    fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let plan: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::Plan { place: format!("{name}, line {line}"), reason: one_line(error.message()) }
        })?;
        match plan.complaint() {
            Some(reason) => Err(Error::Plan { place: name.to_owned(), reason }),
            None => Ok(plan),
        }
    }

    /// What makes a plan impossible, though each value is of its kind.
    fn complaint(&self) -> Option<String> {
        let first_twice = |model: &Model| self.models.iter().filter(|each| *each == model).count();
        if self.models.is_empty() {
            return Some("`models` is empty: name at least one".to_owned());
        }
        if let Some(twice) = self.models.iter().find(|model| first_twice(model) > 1) {
            return Some(format!("`models` names {} twice", twice.objective()));
        }
        if let Some(complaint) = self.generation.complaint() {
            return Some(complaint.to_owned());
        }
        if self.ablation.methods.iter().any(|method| !method.is_mefmax()) {
            return Some("`ablation.methods` takes greedy, author and exact".to_owned());
        }
        None
    }

    /// Whether the plan trains this model.
    pub fn has(&self, model: Model) -> bool {
        self.models.contains(&model)
    }
}

fn one_line(message: &str) -> String {
    message.trim().replace('\n', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_plan() {
        for preset in PlanPreset::ALL {
            let plan = Plan::parse(preset.text(), preset.name()).unwrap();
            assert!(plan.has(Model::Mle) && plan.has(Model::F2), "{}", preset.name());
        }
    }

    #[test]
    fn mistakes_name_the_line_and_the_reason() {
        let complain = |text: &str| Plan::parse(text, "plan.toml").unwrap_err().to_string();
        let whole = "models = [\"mle\"]\n[training]\npreset = \"demo\"\n";
        let cases = [
            "models = [\"mle\"]\n".to_owned(),
            "models = [\"mlp\"]\n".to_owned(),
            "models = []\n[training]\npreset = \"demo\"\n".to_owned(),
            format!("{whole}[generation]\nk = 0\n"),
            format!("{whole}[generation]\nkk = 3\n"),
            format!("{whole}[ablation]\nmethods = [\"equal-tokens\"]\n"),
            format!("{whole}[generation]\nclass_nuclei = [1.5]\n"),
        ];
        let complaints: Vec<String> = cases.iter().map(|text| complain(text)).collect();
        insta::assert_snapshot!(complaints.join("\n"));
    }
}
