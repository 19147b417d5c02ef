use serde::{Deserialize, Serialize};

/// How prefixes are continued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generation {
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
    /// Streams the test split is cut into.
    pub streams: usize,
    /// Texts of a model at most, from all over the test split; all that it holds where missing.
    pub texts: Option<usize>,
    /// Tokens of a prefix.
    pub prefix: usize,
    /// Tokens of a continuation.
    pub continuation: usize,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            k: 3,
            other_k: Vec::new(),
            greedy: false,
            joint: false,
            class_nuclei: Vec::new(),
            streams: 256,
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
        self.streams.min(most).max(1)
    }

    /// What makes it impossible.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        let texts = self.texts == Some(0);
        if texts || self.streams == 0 || self.prefix == 0 || self.continuation == 0 {
            return Some("streams, texts, prefix and continuation are 1 at least");
        }
        if self.k == 0 || self.other_k.contains(&0) {
            return Some("a k of 0 leaves no token to draw");
        }
        let outside = self.class_nuclei.iter().any(|p| !(*p > 0.0 && *p <= 1.0));
        outside.then_some("a class nucleus lies between 0 and 1")
    }
}
