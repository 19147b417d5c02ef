//! Plans: the models, decodings and ablations of an experiment, read from TOML.

mod generation;
mod preset;
mod training;
mod transfer;

use std::path::Path;

use f2_lm::config::ObjectiveName;
use f2_lm::decode::{Cut, Protocol, ProtocolName};
use f2_report::PaperSet;
use serde::Deserialize;

pub use generation::Generation;
pub use preset::PlanPreset;
pub use training::{Ablation, Evaluation, Training};
pub use transfer::Transfer;

use crate::Error;

/// A plan. All fields except the models and the training have defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The title of the report; by default, from the name of the text.
    #[serde(default)]
    pub title: Option<String>,
    /// The paper's set whose numbers are shown next to ours.
    #[serde(default)]
    pub paper: Option<PaperSet>,
    /// The vocabulary size, if the corpus is still text.
    #[serde(default = "default_vocabulary")]
    pub vocabulary: usize,
    /// How documents are separated, as in `f2 prepare --documents`, if the corpus is still text.
    #[serde(default)]
    pub documents: Option<String>,
    /// The seed of initial weights, text order, dropout and sampling.
    #[serde(default)]
    pub seed: u64,
    /// How many times the models are trained, with consecutive seeds from `seed`.
    #[serde(default = "one")]
    pub seeds: u64,
    /// The models to compare, in the order of the tables.
    pub models: Vec<ObjectiveName>,
    /// How the models are trained.
    pub training: Training,
    /// How the models continue prefixes.
    #[serde(default)]
    pub generation: Generation,
    /// Ablations: F² models with other classes.
    #[serde(default)]
    pub ablation: Ablation,
    /// A transfer from another text, if any.
    #[serde(default)]
    pub transfer: Option<Transfer>,
    /// How the texts are scored.
    #[serde(default)]
    pub evaluation: Evaluation,
}

fn default_vocabulary() -> usize {
    30_000
}

fn one() -> u64 {
    1
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

    /// Why the plan is invalid, although each value has the right type.
    fn complaint(&self) -> Option<String> {
        let first_twice =
            |model: &ObjectiveName| self.models.iter().filter(|each| *each == model).count();
        if self.models.is_empty() {
            return Some("`models` is empty: name at least one".to_owned());
        }
        if let Some(twice) = self.models.iter().find(|model| first_twice(model) > 1) {
            return Some(format!("`models` names {} twice", twice.as_str()));
        }
        if self.seeds == 0 {
            return Some("`seeds` is 0: the models are trained once at least".to_owned());
        }
        if self.seed.checked_add(self.seeds).is_none() {
            return Some("`seed` is too large for further seeds above it".to_owned());
        }
        if let Some(complaint) = self.protocol_complaint() {
            return Some(complaint);
        }
        if let Some(complaint) = self.generation.complaint() {
            return Some(complaint.to_owned());
        }
        if self.ablation.methods.iter().any(|method| !method.is_mefmax()) {
            return Some("`ablation.methods` takes greedy, author and exact".to_owned());
        }
        None
    }

    /// Why the protocol contradicts other settings, if it does.
    fn protocol_complaint(&self) -> Option<String> {
        let Generation { protocol, streams, .. } = self.generation;
        if let (Some(paper), Some(protocol)) = (self.paper, protocol)
            && protocol != protocol_of(paper)
        {
            return Some(format!(
                "`paper` names {}, which the paper cuts by the protocol {}, and \
                 `generation.protocol` names {}: a plan has one protocol",
                paper.title(),
                protocol_of(paper).as_str(),
                protocol.as_str()
            ));
        }
        (self.protocol() == ProtocolName::Lyrics && streams.is_some()).then(|| {
            "`generation.streams` belongs to the protocol paper, and this plan has the protocol \
             lyrics: leave it out"
                .to_owned()
        })
    }

    /// How prefixes are cut from the test split.
    pub fn protocol(&self) -> ProtocolName {
        let of_the_paper = || self.paper.map_or(ProtocolName::Paper, protocol_of);
        self.generation.protocol.unwrap_or_else(of_the_paper)
    }

    /// How a test split of this many tokens is cut into prefixes and references.
    pub fn test_protocol(&self, test_tokens: u64) -> Protocol {
        let Generation { prefix, continuation, .. } = self.generation;
        let cut = match self.protocol() {
            ProtocolName::Paper => Cut::Streams(self.generation.streams_of(Some(test_tokens))),
            ProtocolName::Lyrics => Cut::Documents,
        };
        Protocol { cut, prefix, continuation }
    }

    /// Whether the plan trains this model.
    pub fn has(&self, model: ObjectiveName) -> bool {
        self.models.contains(&model)
    }
}

/// The protocol of a set of the paper.
fn protocol_of(paper: PaperSet) -> ProtocolName {
    match paper {
        PaperSet::Wikitext103 => ProtocolName::Paper,
        PaperSet::Lyrics => ProtocolName::Lyrics,
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
            assert!(
                plan.has(ObjectiveName::Mle) && plan.has(ObjectiveName::F2),
                "{}",
                preset.name()
            );
        }
    }

    #[test]
    fn the_plans_for_a_gpu_are_plans_of_both_halves() {
        let (english, lyrics) = (PlanPreset::H200.plan(), PlanPreset::LyricsH200.plan());
        assert_eq!((english.protocol(), english.generation.k), (ProtocolName::Paper, 3));
        assert_eq!((lyrics.protocol(), lyrics.generation.k), (ProtocolName::Lyrics, 20));
        assert!(lyrics.transfer.is_some() && lyrics.generation.joint);
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
            format!("seeds = 0\n{whole}"),
            format!("{whole}[generation]\nprotocol = [\"paper\", \"lyrics\"]\n"),
            format!("paper = \"wikitext103\"\n{whole}[generation]\nprotocol = \"lyrics\"\n"),
            format!("paper = \"lyrics\"\n{whole}[generation]\nstreams = 256\n"),
            format!("{whole}[generation]\nprotocol = \"verse\"\n"),
        ];
        let complaints: Vec<String> = cases.iter().map(|text| complain(text)).collect();
        insta::assert_snapshot!(complaints.join("\n"));
    }
}
