//! `tune.json`: every setting that was tried, the choice, and its test.

use std::path::Path;

use f2_files::{FileRecord, ReadError, regular_file, write_text_atomically};
use f2_lm::decode::DecodingKeys;
use f2_lm::run::SavedModel;
use f2_metrics::{HumanScale, Metric, Metrics, distance, distance_over};
use serde::{Deserialize, Serialize};

use super::sets::Sets;
use super::test::Test;
use crate::failure::Failure;

/// The format of the file.
const FORMAT: u32 = 1;

/// The record of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    #[serde(flatten)]
    pub(super) conditions: Conditions,
    /// The metrics of human text on halves of the validation texts.
    pub(super) target: Metrics,
    /// How much `target` varies: the unit of deviations.
    pub(super) spread: Metrics,
    /// Every setting, in the order it was tried. The first is untuned decoding.
    pub(super) trials: Vec<Trial>,
    /// The numbers of the Pareto-optimal trials: no other is closer on both sides.
    pub(super) frontier: Vec<usize>,
    /// The number of the best trial.
    pub(super) chosen: Option<usize>,
    /// Untuned and chosen decoding on the test split.
    pub(super) test: Option<Test>,
}

/// Everything that the measurements depend on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Conditions {
    /// The model's folder, as the model was opened.
    model: String,
    /// The SHA-256 of its parameters.
    model_sha256: String,
    /// The SHA-256 of the validation prefixes and references.
    validation_sha256: String,
    /// The number of validation texts.
    pub(super) texts: usize,
    /// Tokens written in each.
    new_tokens: usize,
    seed: u64,
    /// How often human texts are cut into halves.
    cuts: u64,
    /// Whether the growth of k is searched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    k_per_class: bool,
}

/// A setting that was tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trial {
    /// Texts it was measured on.
    pub(super) texts: usize,
    pub(super) decoding: DecodingKeys,
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) nearness: Nearness,
}

/// How close texts are to human text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Nearness {
    /// The root mean square of the deviations over the metrics.
    pub(super) distance: Option<f64>,
    /// The same over KLD and MS-Jaccard, which compare with references.
    pub(super) against_references: Option<f64>,
    /// The same over the metrics of the texts alone.
    pub(super) among_themselves: Option<f64>,
    /// Values on halves of the texts.
    pub(super) halves: Metrics,
    /// How far each value is off, in spreads of human text.
    pub(super) deviations: Metrics,
}

impl Nearness {
    pub(super) fn of(
        scale: &HumanScale,
        references: &[Vec<u32>],
        texts: &[Vec<u32>],
    ) -> Result<Self, f2_metrics::Error> {
        let halves = scale.measure(references, texts)?;
        let deviations = scale.deviations(&halves);
        let own = [Metric::SelfBleu, Metric::Distinct, Metric::Rep, Metric::Uniq];
        Ok(Self {
            distance: distance(&deviations),
            against_references: distance_over(&deviations, &[Metric::Kld, Metric::MsJaccard]),
            among_themselves: distance_over(&deviations, &own),
            halves,
            deviations,
        })
    }

    /// The distances on both sides, if both are known.
    pub(super) fn sides(&self) -> Option<(f64, f64)> {
        self.against_references.zip(self.among_themselves)
    }
}

impl Conditions {
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn new(
        model: &SavedModel,
        sets: &Sets,
        seed: u64,
        k_per_class: bool,
    ) -> Result<Self, Failure> {
        let parameters = model.folder.join("model.safetensors");
        let hash = FileRecord::of(&parameters).map_err(ReadError::of(&parameters))?;
        let texts = sets.valid.prefixes.iter().chain(&sets.valid.references);
        let bytes: Vec<u8> = texts.flatten().flat_map(|id| id.to_le_bytes()).collect();
        Ok(Self {
            model: model.folder.display().to_string(),
            model_sha256: hash.sha256,
            validation_sha256: FileRecord::of_bytes(&bytes).sha256,
            texts: sets.valid.references.len(),
            new_tokens: sets.new_tokens,
            seed,
            cuts: HumanScale::CUTS,
            k_per_class,
        })
    }

    /// The first condition that differs, in words. `model` may: its folder may have moved.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let texts = |of: &Self| (of.validation_sha256.clone(), of.texts, of.new_tokens);
        let differs = [
            ("of another model", self.model_sha256 != other.model_sha256),
            ("on other texts", texts(self) != texts(other)),
            ("with another seed", self.seed != other.seed),
            ("with other halves of the texts", self.cuts != other.cuts),
            ("with one k for all classes", !self.k_per_class && other.k_per_class),
            ("with a k for each class", self.k_per_class && !other.k_per_class),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(words, _)| words)
    }
}

impl Record {
    /// The record in a file, or a new one if there is none. That of another search is not replaced:
    /// it may have taken hours.
    pub(super) fn open(path: &Path, conditions: Conditions) -> Result<Self, Failure> {
        let (target, spread) = (Metrics::default(), Metrics::default());
        let (trials, frontier) = (Vec::new(), Vec::new());
        let format = FORMAT;
        let new =
            Self { format, conditions, target, spread, trials, frontier, chosen: None, test: None };
        if !path.exists() {
            return Ok(new);
        }
        let found = Self::read(path)?;
        let difference = match found.format {
            FORMAT => found.conditions.difference(&new.conditions),
            _ => Some("in another format"),
        };
        if let Some(difference) = difference {
            let path = path.display();
            return Err(Failure::usage(format!("{path} records another search, {difference}"))
                .advise("write elsewhere with `--out`, or remove that file to start over"));
        }
        remark!("continuing from {} settings in {}", found.trials.len(), path.display());
        Ok(Self { test: None, conditions: new.conditions, ..found })
    }

    /// Reads the record in a file.
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = f2_files::read_text(regular_file(path)?)?;
        let found = serde_json::from_str(&text).map_err(|error| error.to_string());
        found.and_then(Self::checked).map_err(|reason| {
            Failure::data(format!("{} is no record of `f2 tune`: {reason}", path.display()))
                .advise("remove it, or write elsewhere with `--out`")
        })
    }

    /// Refuses the numbers of trials that do not exist, and impossible measurements.
    fn checked(self) -> Result<Self, String> {
        let trials = self.trials.len();
        let mut named = self.chosen.iter().chain(&self.frontier);
        if let Some(number) = named.find(|number| **number >= trials) {
            return Err(format!(
                "it names trial {number}, counted from 0, and has {trials} trials"
            ));
        }
        for (number, Trial { seconds, nearness, .. }) in self.trials.iter().enumerate() {
            let Nearness { distance, against_references, among_themselves, .. } = nearness;
            let distances = [distance, against_references, among_themselves].into_iter().flatten();
            let mut measured = [seconds].into_iter().chain(distances);
            if let Some(value) = measured.find(|value| !(0.0..f64::INFINITY).contains(*value)) {
                return Err(format!(
                    "trial {number}, counted from 0, has {value} for seconds or a distance"
                ));
            }
        }
        Ok(self)
    }

    /// Computes the choice and the frontier.
    pub(super) fn settle(&mut self) {
        let whole = |trial: &Trial| trial.texts == self.conditions.texts;
        let ranked = |only_whole: bool| {
            let all = self.trials.iter().enumerate();
            let kept = all.filter(move |(_, trial)| !only_whole || whole(trial));
            kept.filter_map(|(number, trial)| Some((number, trial.nearness.distance?)))
        };
        let least = |(one, a): (usize, f64), (two, b): (usize, f64)| {
            if b < a { (two, b) } else { (one, a) }
        };
        // Distances on a part of the texts have other units: they count only as long as at most one
        // setting was measured on all texts.
        let only_whole = ranked(true).count() > 1 || ranked(false).count() <= 2;
        let part = |number: &usize| only_whole || !whole(&self.trials[*number]);
        let chosen = ranked(only_whole)
            .filter(|(number, _)| part(number))
            .reduce(least)
            .map(|(number, _)| number);
        let sides: Vec<(usize, (f64, f64))> = ranked(true)
            .filter_map(|(number, _)| Some((number, self.trials[number].nearness.sides()?)))
            .collect();
        let beaten = |(x, y): (f64, f64)| {
            sides.iter().any(|(_, (a, b))| *a <= x && *b <= y && (*a < x || *b < y))
        };
        let mut frontier: Vec<(usize, (f64, f64))> =
            sides.iter().copied().filter(|(_, point)| !beaten(*point)).collect();
        frontier.sort_by(|one, two| one.1.0.total_cmp(&two.1.0));
        frontier.dedup_by(|two, one| one.1 == two.1);
        let frontier = frontier.into_iter().map(|(number, _)| number).collect();
        (self.chosen, self.frontier) = (chosen, frontier);
    }

    /// The best setting.
    pub(super) fn chosen(&self) -> Option<&Trial> {
        self.chosen.map(|number| &self.trials[number])
    }

    /// The comment in decoding.toml about its origin.
    pub(super) fn comment(&self) -> String {
        let shown =
            |distance: Option<f64>| distance.map_or("?".to_owned(), |far| format!("{far:.2}"));
        let of = |trial: Option<&Trial>| shown(trial.and_then(|trial| trial.nearness.distance));
        format!(
            "How texts are written with this model unless flags say otherwise. What is not named is off.\n\
             Chosen by `f2 tune` among {} settings on {} validation texts: distance to human text {},\n\
             untuned {}, in units of the spread of human text.",
            self.trials.len(),
            self.conditions.texts,
            of(self.chosen()),
            of(self.trials.first()),
        )
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names") + "\n"
    }

    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        Ok(write_text_atomically(path, &self.json())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_files;
    use crate::verbs::tune::show;

    #[test]
    fn changed_records_are_read_or_refused() {
        fuzz_files("tunings", "tunings", "tune.json", |path| {
            let Ok(mut record) = Record::read(path) else { return };
            let used = |record: &Record| {
                let chosen = record.chosen().map(|trial| trial.decoding.text(&record.comment()));
                (chosen, show::tables(record), show::figure(record).to_svg(), record.json())
            };
            drop(used(&record));
            record.test = None;
            record.settle();
            drop(used(&record));
        });
    }
}
