//! Continuations of the same prefixes, token by token.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A prefix and its continuations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleResult {
    /// The number of the prefix among those of the test split, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// The text that is continued.
    pub prefix: String,
    /// Human first, then the models.
    pub continuations: Vec<SampleText>,
}

/// A continuation of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleText {
    /// The model, or `Human`.
    pub name: String,
    /// Its tokens.
    pub tokens: Vec<SampleToken>,
}

/// One token of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleToken {
    /// The characters it adds to the text.
    pub text: String,
    /// Its frequency band: 0 frequent, 1 medium, 2 rare, 3 very rare.
    pub band: u8,
    /// Its frequency class, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
    /// Its probability under the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl SampleText {
    /// VR: the share of very rare tokens.
    pub fn very_rare(&self) -> Option<f64> {
        let rare = self.tokens.iter().filter(|token| token.band == 3).count();
        (!self.tokens.is_empty()).then(|| rare as f64 / self.tokens.len() as f64)
    }

    /// Which tokens belong to a trigram that occurred before in the text.
    pub fn repeats(&self) -> Vec<bool> {
        let mut repeated = vec![false; self.tokens.len()];
        let mut seen = HashSet::new();
        let texts: Vec<&str> = self.tokens.iter().map(|token| token.text.as_str()).collect();
        for (start, three) in texts.windows(3).enumerate() {
            if !seen.insert(three) {
                repeated[start..start + 3].fill(true);
            }
        }
        repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_tokens_that_come_again_are_repeats() {
        let token = |text: &str| SampleToken { text: text.to_owned(), ..SampleToken::default() };
        let tokens = "a b c d a b c a b".split(' ').map(token).collect();
        let repeats = SampleText { name: "MLE".to_owned(), tokens }.repeats();
        let places: Vec<usize> = (0..9).filter(|&place| repeats[place]).collect();
        assert_eq!(places, [4, 5, 6]);
        assert!(SampleText::default().repeats().is_empty());
    }
}
