//! `decoding.toml`: the strategy a model is decoded with by default, beside the model.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{
    BeamSearch, ClassDraw, Factorisation, Mirostat, SmallClass, Strategy, Truncations, Xtc,
};
use crate::Error;
use crate::config::{Leaf, in_words, leaves, line_of, nearest};
use crate::model::ModelShape;

/// The file's name in the folder of a run or a model.
pub const DECODING: &str = "decoding.toml";

/// Declares the keys once, each of which may be left out, and their names.
macro_rules! keys {
    ($(#[$about:meta])* $($name:ident: $kind:ty,)*) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct DecodingKeys {
            $(#[serde(skip_serializing_if = "Option::is_none")] $name: Option<$kind>,)*
        }

        /// The names of the keys, in the order they are written.
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

keys! {
    /// A [`Strategy`] under the names it has in files: those of the flags of `f2 generate`. What is
    /// at its default is left out, but for the temperature. DRY, whose breakers are tokens, contrastive
    /// search and the contrast with another model are not kept in files.
    ///
    /// ```
    /// use f2_lm::decode::{DecodingKeys, Strategy};
    /// assert_eq!(DecodingKeys::from(&Strategy::top_k(3)).to_string(), "temperature 1, top_k 3");
    /// ```
    joint: bool,
    class_temperature: f64,
    class_top_k: usize,
    class_top_p: f64,
    small_class: SmallClass,
    temperature: f64,
    top_k: usize,
    typical: f64,
    top_p: f64,
    min_p: f64,
    top_n_sigma: f64,
    epsilon_cutoff: f64,
    eta_cutoff: f64,
    mirostat_tau: f64,
    mirostat_eta: f64,
    xtc_probability: f64,
    xtc_threshold: f64,
    repetition_penalty: f64,
    block_ngrams: usize,
    deterministic: bool,
    beam: usize,
    beam_groups: usize,
    diversity: f64,
    length_penalty: f64,
    beam_iterations: usize,
}

/// The keys that only a model with classes can follow.
const CLASS_KEYS: [&str; 4] = ["class_temperature", "class_top_k", "class_top_p", "small_class"];
/// Those that say more about a beam.
const BEAM_KEYS: [&str; 4] = ["beam_groups", "diversity", "length_penalty", "beam_iterations"];

impl From<&Strategy> for DecodingKeys {
    fn from(strategy: &Strategy) -> Self {
        let Strategy {
            temperature,
            truncations,
            repetition_penalty,
            block_ngrams,
            dry: _,
            xtc,
            mirostat,
            factorisation,
            deterministic,
            beam,
            contrastive_search: _,
            contrast: _,
        } = strategy;
        let Truncations { top_n_sigma, top_k, typical, top_p, min_p, epsilon, eta } = truncations;
        let (joint, draw) = match factorisation {
            Factorisation::Decoupled(draw) => (false, draw.clone()),
            Factorisation::Joint => (true, ClassDraw::default()),
        };
        let beam_default = BeamSearch::default();
        let beam = beam.as_ref();
        let of_beam = |value: fn(&BeamSearch) -> f64| {
            beam.map(value).filter(|given| *given != value(&beam_default))
        };
        Self {
            temperature: Some(*temperature),
            top_k: *top_k,
            typical: *typical,
            top_p: *top_p,
            min_p: *min_p,
            top_n_sigma: *top_n_sigma,
            epsilon_cutoff: *epsilon,
            eta_cutoff: *eta,
            mirostat_tau: mirostat.as_ref().map(|mirostat| mirostat.tau),
            mirostat_eta: mirostat.as_ref().map(|mirostat| mirostat.eta),
            xtc_probability: xtc.as_ref().map(|xtc| xtc.probability),
            xtc_threshold: xtc.as_ref().map(|xtc| xtc.threshold),
            repetition_penalty: unless(*repetition_penalty, 1.0),
            block_ngrams: unless(*block_ngrams, 0),
            deterministic: unless(*deterministic, false),
            joint: unless(joint, false),
            class_temperature: unless(draw.temperature, 1.0),
            class_top_k: draw.top_k,
            class_top_p: unless(draw.top_p, 1.0),
            small_class: unless(draw.small, SmallClass::Clamp),
            beam: beam.map(|beam| beam.width),
            beam_groups: beam.and_then(|beam| unless(beam.groups, beam_default.groups)),
            diversity: of_beam(|beam| beam.diversity),
            length_penalty: of_beam(|beam| beam.length_penalty),
            beam_iterations: beam.and_then(|beam| unless(beam.iterations, beam_default.iterations)),
        }
    }
}

/// A value that is not the default.
fn unless<T: Copy + PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

impl From<&DecodingKeys> for Strategy {
    fn from(keys: &DecodingKeys) -> Self {
        let DecodingKeys {
            temperature,
            top_k,
            typical,
            top_p,
            min_p,
            top_n_sigma,
            epsilon_cutoff: epsilon,
            eta_cutoff: eta,
            mirostat_tau,
            mirostat_eta,
            xtc_probability,
            xtc_threshold,
            repetition_penalty,
            block_ngrams,
            joint,
            class_temperature,
            class_top_k,
            class_top_p,
            small_class,
            deterministic,
            beam,
            beam_groups,
            diversity,
            length_penalty,
            beam_iterations,
        } = *keys;
        let usual = BeamSearch::default();
        let draw = ClassDraw {
            temperature: class_temperature.unwrap_or(1.0),
            top_k: class_top_k,
            top_p: class_top_p.unwrap_or(1.0),
            small: small_class.unwrap_or_default(),
        };
        Self {
            temperature: temperature.unwrap_or(1.0),
            truncations: Truncations { top_n_sigma, top_k, typical, top_p, min_p, epsilon, eta },
            repetition_penalty: repetition_penalty.unwrap_or(1.0),
            block_ngrams: block_ngrams.unwrap_or(0),
            dry: None,
            xtc: xtc_probability.map(|probability| Xtc {
                probability,
                threshold: xtc_threshold.unwrap_or(Xtc::default().threshold),
            }),
            mirostat: mirostat_tau
                .map(|tau| Mirostat { tau, eta: mirostat_eta.unwrap_or(Mirostat::default().eta) }),
            factorisation: if joint == Some(true) {
                Factorisation::Joint
            } else {
                Factorisation::Decoupled(draw)
            },
            deterministic: deterministic == Some(true),
            beam: beam.map(|width| BeamSearch {
                width,
                groups: beam_groups.unwrap_or(usual.groups),
                diversity: diversity.unwrap_or(usual.diversity),
                length_penalty: length_penalty.unwrap_or(usual.length_penalty),
                iterations: beam_iterations.unwrap_or(usual.iterations),
            }),
            contrastive_search: None,
            contrast: None,
        }
    }
}

/// Key and value of what is set, such as `temperature 0.9, top_k 3`.
impl fmt::Display for DecodingKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value): (&String, &Value)| match value {
            Value::Float(number) => format!("{key} {number}"),
            value => format!("{key} {value}"),
        };
        let table = self.table();
        // A table sorts them by name.
        let mut keys: Vec<(&String, &Value)> = table.iter().collect();
        keys.sort_by_key(|(key, _)| NAMES.iter().position(|name| name == key));
        formatter.write_str(&keys.into_iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

impl DecodingKeys {
    fn table(&self) -> Table {
        Table::try_from(self).expect("numbers, names and flags are TOML")
    }

    /// The text of a file, under lines of comment.
    pub fn text(&self, comment: &str) -> String {
        let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        format!("{comment}\n{}", toml::to_string(self).expect("numbers, names and flags are TOML"))
    }

    /// Reads a file, for a model of this shape.
    pub fn read(path: &Path, shape: &ModelShape) -> Result<Self, Error> {
        let text = f2_files::read_text(path)?;
        let leaves = leaves(&text).map_err(|error| Error::ConfigSyntax {
            path: path.to_path_buf(),
            line: error.span().map_or(1, |span| line_of(&text, span.start)),
            reason: error.message().replace('\n', ", "),
        })?;
        let file = File { path, leaves: &leaves };
        let keys = file.keys()?;
        file.check_kind(shape)?;
        Strategy::from(&keys).check(shape).map_err(|error| file.blame(error))?;
        Ok(keys)
    }
}

/// A file that is being read.
struct File<'a> {
    path: &'a Path,
    leaves: &'a [Leaf],
}

impl File<'_> {
    /// The keys, each tried by itself so that a mistake is blamed on its line.
    fn keys(&self) -> Result<DecodingKeys, Error> {
        let mut all = Table::new();
        for Leaf { key, value, line } in self.leaves {
            if !NAMES.contains(&key.as_str()) {
                let nearest = nearest(key, NAMES.iter().copied()).map(str::to_owned);
                return Err(Error::UnknownKey {
                    key: key.clone(),
                    place: self.place(Some(*line)),
                    nearest,
                });
            }
            let alone = Table::from_iter([(key.clone(), value.clone())]);
            if let Err(error) = alone.try_into::<DecodingKeys>() {
                return Err(self.bad(key, in_words(error.message())));
            }
            all.insert(key.clone(), value.clone());
        }
        Ok(all.try_into().expect("each value was tried"))
    }

    /// Refuses keys that say nothing to this kind of model, or beside each other.
    fn check_kind(&self, shape: &ModelShape) -> Result<(), Error> {
        let given = |key: &str| self.leaves.iter().any(|leaf| leaf.key == key);
        let found = |keys: &[&'static str]| keys.iter().copied().find(|key| given(key));
        let is_joint = self
            .leaves
            .iter()
            .any(|leaf| leaf.key == "joint" && leaf.value == Value::Boolean(true));
        if shape.class_ends.is_empty()
            && let Some(key) = found(&CLASS_KEYS).or_else(|| found(&["joint"]))
        {
            return Err(self.bad(key, "it is for F² models; this one has a plain softmax".into()));
        }
        if is_joint && let Some(key) = found(&CLASS_KEYS) {
            return Err(self.bad(key, "with `joint` no class is drawn".into()));
        }
        let needed: [(&[&'static str], &str); 3] = [
            (&BEAM_KEYS, "beam"),
            (&["mirostat_eta"], "mirostat_tau"),
            (&["xtc_threshold"], "xtc_probability"),
        ];
        for (keys, needed) in needed {
            if let Some(key) = found(keys).filter(|_| !given(needed)) {
                return Err(self.bad(key, format!("it needs `{needed}`")));
            }
        }
        Ok(())
    }

    /// An error of the strategy, with the key it is about.
    fn blame(&self, error: Error) -> Error {
        let Error::Strategy { option, reason } = error else { return error };
        let key = match option {
            "small classes" => "small_class".to_owned(),
            "beam width" => "beam".to_owned(),
            "top-nσ" => "top_n_sigma".to_owned(),
            "epsilon cut-off" => "epsilon_cutoff".to_owned(),
            "eta cut-off" => "eta_cutoff".to_owned(),
            "mirostat" => "mirostat_tau".to_owned(),
            "XTC" => "xtc_probability".to_owned(),
            option => option.replace([' ', '-'], "_").to_lowercase(),
        };
        self.bad(&key, reason)
    }

    fn bad(&self, key: &str, reason: String) -> Error {
        let line = self.leaves.iter().find(|leaf| leaf.key == key).map(|leaf| leaf.line);
        Error::ConfigValue { key: key.to_owned(), place: self.place(line), reason }
    }

    fn place(&self, line: Option<usize>) -> String {
        let path = self.path.display();
        line.map_or_else(|| path.to_string(), |line| format!("{path}, line {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;

    fn shape(class_ends: Vec<u32>) -> ModelShape {
        ModelShape { model: ModelConfig::default(), positions: 8, vocabulary: 50, class_ends }
    }

    fn read(text: &str, shape: &ModelShape) -> Result<Strategy, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DECODING);
        std::fs::write(&path, text).unwrap();
        let refused =
            |error: Error| error.to_string().replace(&format!("{}/", folder.path().display()), "");
        DecodingKeys::read(&path, shape).map(|keys| Strategy::from(&keys)).map_err(refused)
    }

    #[test]
    fn every_setting_survives_the_file() {
        let everything = Strategy {
            temperature: 0.3,
            truncations: Truncations {
                top_k: Some(7),
                typical: Some(0.4),
                top_p: Some(0.5),
                min_p: Some(0.06),
                top_n_sigma: Some(1.5),
                epsilon: Some(0.001),
                eta: Some(0.002),
            },
            repetition_penalty: 1.7,
            block_ngrams: 3,
            xtc: Some(Xtc { probability: 0.5, threshold: 0.2 }),
            factorisation: Factorisation::Decoupled(ClassDraw {
                temperature: 0.8,
                top_k: Some(2),
                top_p: 0.9,
                small: SmallClass::Fill,
            }),
            ..Strategy::default()
        };
        let beam = BeamSearch {
            width: 6,
            groups: 3,
            diversity: 0.25,
            length_penalty: 0.75,
            iterations: 2,
        };
        let all = [
            Strategy::default(),
            Strategy::greedy(),
            Strategy::top_k(3).joint(),
            Strategy { deterministic: true, ..Strategy::top_k(3) },
            Strategy { mirostat: Some(Mirostat { tau: 4.0, eta: 0.2 }), ..Strategy::default() },
            everything,
            Strategy { beam: Some(beam), ..Strategy::default() },
            Strategy { beam: Some(BeamSearch::default()), ..Strategy::default() },
        ];
        for strategy in all {
            let text = DecodingKeys::from(&strategy).text("one\ntwo");
            assert!(text.starts_with("# one\n# two\n\n"), "{text}");
            assert_eq!(read(&text, &shape(vec![10, 50])), Ok(strategy), "{text}");
        }
    }

    #[test]
    fn what_no_model_can_follow_is_refused_with_its_line() {
        let f2 = shape(vec![10, 50]);
        let plain = shape(Vec::new());
        let refused = [
            read("temperature = 1\ntop_q = 0.5\n", &f2),
            read("temperature = 'hot'\n", &f2),
            read("\ntop_k = 51\n", &f2),
            read("top_k = -1\n", &f2),
            read("top_p = 1.5\n", &f2),
            read("class_top_p = 0\n", &f2),
            read("class_temperature = nan\n", &f2),
            read("small_class = 'fill'\n", &f2),
            read("class_temperature = 0.5\n", &plain),
            read("joint = true\nclass_top_k = 1\n", &f2),
            read("beam_groups = 2\n", &f2),
            read("beam = 4\ntop_k = 3\n", &f2),
            read("xtc_threshold = 0.1\n", &f2),
            read("mirostat_tau = 3.0\ntop_k = 3\n", &f2),
            read("top_n_sigma = -1\n", &f2),
            read("temperature = \n", &f2),
            read("[beam]\nwidth = 3\n", &f2),
        ];
        let refused = refused.map(Result::unwrap_err);
        insta::assert_snapshot!(refused.join("\n"));
    }
}
