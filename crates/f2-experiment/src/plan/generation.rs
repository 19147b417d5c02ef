//! The settings for continuing prefixes.

use std::fmt;

use f2_lm::decode::ProtocolName;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The settings for continuing prefixes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generation {
    /// How prefixes are cut from the test split; by default, as for the paper's set.
    #[serde(deserialize_with = "protocol")]
    pub protocol: Option<ProtocolName>,
    /// The k of the main table.
    pub k: usize,
    /// Further values of k.
    pub other_k: Vec<usize>,
    /// Whether to decode greedily as well.
    pub greedy: bool,
    /// Whether to decode F² from the full posterior as well.
    pub joint: bool,
    /// Class nuclei to decode F² with as well; in the main table, all classes are sampled.
    pub class_nuclei: Vec<f64>,
    /// Whether to train and decode F² as in the authors' program as well.
    pub authors_program: bool,
    /// The number of streams of the protocol `paper`; 256 by default.
    pub streams: Option<usize>,
    /// The largest number of texts per model; by default, all of the test split.
    pub texts: Option<usize>,
    /// The length of a prefix in tokens.
    pub prefix: usize,
    /// The length of a continuation in tokens.
    pub continuation: usize,
}

/// Deserializes a protocol from its name.
fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProtocolName>, D::Error> {
    deserializer.deserialize_any(OneProtocol).map(Some)
}

/// Deserializes the name of a protocol; a list is rejected with an explanation.
struct OneProtocol;

impl<'de> Visitor<'de> for OneProtocol {
    type Value = ProtocolName;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`paper` or `lyrics`")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ProtocolName, E> {
        let found = ProtocolName::ALL.into_iter().find(|protocol| protocol.as_str() == name);
        found
            .ok_or_else(|| E::custom(format!("there is no protocol {name}; it is paper or lyrics")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<ProtocolName, A::Error> {
        Err(serde::de::Error::custom(
            "a plan has one protocol: write a plan for each corpus, and name both corpora and both \
             plans",
        ))
    }
}

/// The default number of streams of the protocol `paper`.
const STREAMS: usize = 256;

impl Default for Generation {
    fn default() -> Self {
        Self {
            protocol: None,
            k: 3,
            other_k: Vec::new(),
            greedy: false,
            joint: false,
            class_nuclei: Vec::new(),
            authors_program: false,
            streams: None,
            texts: None,
            prefix: 50,
            continuation: 100,
        }
    }
}

impl Generation {
    /// The length of a prefix and its continuation in tokens.
    pub fn window(&self) -> usize {
        self.prefix + self.continuation
    }

    /// The number of streams for a test split of this size: each is at least one window long.
    pub(crate) fn streams_of(&self, test_tokens: Option<u64>) -> usize {
        let most = test_tokens.map_or(usize::MAX, |tokens| tokens as usize / self.window());
        self.streams.unwrap_or(STREAMS).min(most).max(1)
    }

    /// Why the settings are invalid, if they are.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        let none = [self.streams, self.texts, Some(self.prefix), Some(self.continuation)];
        if none.contains(&Some(0)) {
            return Some("streams, texts, prefix and continuation are 1 at least");
        }
        if self.k == 0 || self.other_k.contains(&0) {
            return Some("a k of 0 leaves no token to draw");
        }
        let outside = self.class_nuclei.iter().any(|p| !(*p > 0.0 && *p <= 1.0));
        outside.then_some("a class nucleus lies between 0 and 1")
    }
}
