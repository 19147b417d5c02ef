//! How the models continue prefixes.

use std::fmt;

use f2_lm::decode::ProtocolName;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// How prefixes are continued.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generation {
    /// How prefixes are cut from the test split; that of the paper's set where it is missing.
    #[serde(deserialize_with = "protocol")]
    pub protocol: Option<ProtocolName>,
    /// The k of the main table.
    pub k: usize,
    /// Further k.
    pub other_k: Vec<usize>,
    /// Whether to decode greedily too.
    pub greedy: bool,
    /// Whether to decode F² from the full posterior too.
    pub joint: bool,
    /// Nuclei of classes to decode F² with too; the main table draws from all classes.
    pub class_nuclei: Vec<f64>,
    /// Whether to train and decode F² as the authors' program does too.
    pub authors_program: bool,
    /// Streams the test split is cut into, by the protocol `paper`; 256 where missing.
    pub streams: Option<usize>,
    /// Texts of a model at most; all that the test split holds where missing.
    pub texts: Option<usize>,
    /// Tokens of a prefix.
    pub prefix: usize,
    /// Tokens of a continuation.
    pub continuation: usize,
}

/// Reads a protocol by its name.
fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProtocolName>, D::Error> {
    deserializer.deserialize_any(OneProtocol).map(Some)
}

/// Reads the name of a protocol, and refuses a list of them with the reason.
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

/// Streams of the protocol `paper` where a plan names no number.
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
    /// Tokens of a prefix and its continuation.
    pub fn window(&self) -> usize {
        self.prefix + self.continuation
    }

    /// The streams a test split of this size is cut into: each holds a window at least.
    pub(crate) fn streams_of(&self, test_tokens: Option<u64>) -> usize {
        let most = test_tokens.map_or(usize::MAX, |tokens| tokens as usize / self.window());
        self.streams.unwrap_or(STREAMS).min(most).max(1)
    }

    /// Why it is impossible, where it is.
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
