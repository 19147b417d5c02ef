//! The keys of `decoding.toml`, and the strategies they stand for.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use toml::{Table, Value};

use crate::decode::{
    BeamSearch, ClassDraw, Factorisation, Mirostat, SmallClass, Strategy, TruncationSetting,
    Truncations, Xtc,
};

/// Declares the keys, all of them optional, and how they are written and read. Those of truncations
/// come from the list of rules and are placed between the others.
macro_rules! keys {
    (
        $(#[$about:meta])*
        $($before:ident: $before_kind:ty,)*
        ..truncations,
        $($after:ident: $after_kind:ty,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct DecodingKeys {
            $($before: Option<$before_kind>,)*
            truncations: Truncations,
            $($after: Option<$after_kind>,)*
        }

        /// The names of the keys, in the order they are written.
        pub(super) static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
            let truncations = Truncations::rules().iter().map(|rule| rule.key);
            let before = [$(stringify!($before)),*].into_iter();
            before.chain(truncations).chain([$(stringify!($after)),*]).collect()
        });

        impl Serialize for DecodingKeys {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Self { $($before,)* truncations, $($after,)* } = self;
                let mut map = serializer.serialize_map(None)?;
                $(if let Some(value) = $before {
                    map.serialize_entry(stringify!($before), value)?;
                })*
                for (rule, setting) in truncations.set() {
                    map.serialize_entry(rule.key, &rule.written(setting))?;
                }
                $(if let Some(value) = $after {
                    map.serialize_entry(stringify!($after), value)?;
                })*
                map.end()
            }
        }

        impl DecodingKeys {
            /// Reads the value of a key.
            fn read_value<'de, M: MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut M,
            ) -> Result<(), M::Error> {
                match key {
                    $(stringify!($before) => self.$before = map.next_value()?,)*
                    $(stringify!($after) => self.$after = map.next_value()?,)*
                    key => self.truncations = read_truncation(self.truncations, key, map)?,
                }
                Ok(())
            }
        }
    };
}

keys! {
    /// A [`Strategy`] as keys of a file, named as the flags of `f2 generate`. Defaults are left
    /// out, except for the temperature. DRY, whose breakers are tokens, contrastive search and
    /// contrastive decoding are not kept in files.
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
    ..truncations,
    top_k_growth: f64,
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

/// Reads the value of a key that must be a truncation's.
fn read_truncation<'de, M: MapAccess<'de>>(
    truncations: Truncations,
    key: &str,
    map: &mut M,
) -> Result<Truncations, M::Error> {
    let rule = Truncations::rules().iter().find(|rule| rule.key == key);
    let rule = rule.ok_or_else(|| M::Error::unknown_field(key, &NAMES))?;
    let setting = match rule.setting {
        TruncationSetting::Count => map.next_value::<Option<usize>>()?.map(|count| count as f64),
        TruncationSetting::Share | TruncationSetting::Positive => map.next_value()?,
    };
    Ok(truncations.with(rule, setting))
}

impl<'de> Deserialize<'de> for DecodingKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = DecodingKeys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the keys of a decoding")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<DecodingKeys, M::Error> {
        let mut keys = DecodingKeys::default();
        while let Some(key) = map.next_key::<String>()? {
            keys.read_value(&key, &mut map)?;
        }
        // Every value must be representable in TOML; JSON has larger numbers.
        match Table::try_from(&keys) {
            Ok(_) => Ok(keys),
            Err(_) => Err(M::Error::custom("a number is larger than a file can hold")),
        }
    }
}

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
            truncations: *truncations,
            top_k_growth: unless(draw.top_k_growth, 0.0),
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
            truncations,
            top_k_growth,
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
            top_k_growth: top_k_growth.unwrap_or(0.0),
        };
        Self {
            temperature: temperature.unwrap_or(1.0),
            truncations,
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

/// The keys that are set, with their values, such as `temperature 0.9, top_k 3`.
impl fmt::Display for DecodingKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value): (&String, &Value)| match value {
            Value::Float(number) => format!("{key} {number}"),
            value => format!("{key} {value}"),
        };
        let table = self.table();
        // The table is sorted by name.
        let mut keys: Vec<(&String, &Value)> = table.iter().collect();
        keys.sort_by_key(|(key, _)| NAMES.iter().position(|name| name == key));
        formatter.write_str(&keys.into_iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

impl DecodingKeys {
    fn table(&self) -> Table {
        Table::try_from(self).expect("numbers, names and flags are TOML")
    }
}
