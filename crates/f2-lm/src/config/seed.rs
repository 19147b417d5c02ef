//! Seeds in TOML, whose whole numbers end at 2⁶³ - 1: larger ones are written as text.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serialize as _, Serializer};

#[allow(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
pub(super) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(seed) => seed.serialize(serializer),
        Err(_) => seed.to_string().serialize(serializer),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Seed)
}

struct Seed;

impl Visitor<'_> for Seed {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number from 0 to 2^64 - 1")
    }

    fn visit_u64<E: Error>(self, seed: u64) -> Result<u64, E> {
        Ok(seed)
    }

    fn visit_i64<E: Error>(self, seed: i64) -> Result<u64, E> {
        u64::try_from(seed)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(seed), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}
