//! `decoding.toml`, a file next to a model: the strategy it is decoded with by default.

mod keys;

use std::path::Path;

use toml::{Table, Value};

use super::{Strategy, Truncations};
use crate::Error;
use crate::config::{Leaf, in_words, leaves, line_of, nearest};
use crate::model::ModelShape;

pub use keys::DecodingKeys;
use keys::NAMES;

/// The file's name in the folder of a run or a model.
pub const DECODING: &str = "decoding.toml";

/// The keys that apply only to a model with classes.
const CLASS_KEYS: [&str; 5] =
    ["class_temperature", "class_top_k", "class_top_p", "small_class", "top_k_growth"];
/// The keys that refine `beam`.
const BEAM_KEYS: [&str; 4] = ["beam_groups", "diversity", "length_penalty", "beam_iterations"];

impl DecodingKeys {
    /// The text of a file, which begins with `comment`.
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
    /// The keys, each parsed on its own so that an error names its line.
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

    /// Refuses keys that do not apply to this kind of model, exclude each other or lack one they
    /// need.
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

    /// Converts an error of the strategy to one that names the key.
    fn blame(&self, error: Error) -> Error {
        let Error::Strategy { option, reason } = error else { return error };
        let key = match option {
            "small classes" => "small_class".to_owned(),
            "beam width" => "beam".to_owned(),
            "mirostat" => "mirostat_tau".to_owned(),
            "XTC" => "xtc_probability".to_owned(),
            option => match Truncations::rule_named(option) {
                Some(rule) => rule.key.to_owned(),
                None => option.replace([' ', '-'], "_").to_lowercase(),
            },
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
    use crate::decode::{
        BeamSearch, ClassDraw, Factorisation, Mirostat, SmallClass, TruncationSetting, Xtc,
    };

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

    /// All rules, each with a different setting.
    fn every_truncation() -> Truncations {
        let rules = (1_u8..).zip(Truncations::rules());
        rules.fold(Truncations::default(), |truncations, (number, rule)| {
            let setting = match rule.setting {
                TruncationSetting::Count => f64::from(number),
                TruncationSetting::Share => f64::from(number) / 100.0,
                TruncationSetting::Positive => f64::from(number) + 0.5,
            };
            truncations.with(rule, setting)
        })
    }

    /// JSON, the format of `tune.json`, has larger numbers than TOML.
    #[test]
    fn a_number_that_no_file_can_hold_is_refused() {
        for key in ["top_k", "block_ngrams", "beam"] {
            let keys = |value: u64| {
                serde_json::from_value::<DecodingKeys>(serde_json::json!({ key: value }))
            };
            assert!(keys(3).is_ok());
            let error = keys(u64::MAX).unwrap_err().to_string();
            assert!(error.contains("larger than a file can hold"), "{key}: {error}");
        }
    }

    #[test]
    fn every_setting_survives_the_file() {
        let everything = Strategy {
            temperature: 0.3,
            truncations: every_truncation(),
            repetition_penalty: 1.7,
            block_ngrams: 3,
            xtc: Some(Xtc { probability: 0.5, threshold: 0.2 }),
            factorisation: Factorisation::Decoupled(ClassDraw {
                temperature: 0.8,
                top_k: Some(2),
                top_p: 0.9,
                small: SmallClass::Fill,
                top_k_growth: 0.25,
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
            read("top_k = 3\ntop_k_growth = -0.5\n", &f2),
            read("top_k_growth = inf\ntop_k = 3\n", &f2),
            read("top_p = 0.9\ntop_k_growth = 0.5\n", &f2),
            read("joint = true\ntop_k = 3\ntop_k_growth = 0.5\n", &f2),
            read("top_k = 3\ntop_k_growth = 0.5\n", &plain),
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
