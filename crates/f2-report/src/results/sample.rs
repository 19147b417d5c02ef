use serde::{Deserialize, Serialize};

/// One prefix and what every model made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleResult {
    /// The place of the prefix among those of the test split, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// What they all begin with.
    pub prefix: String,
    /// Human first, then the models.
    pub continuations: Vec<Continuation>,
}

/// One text after a prefix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// Who wrote it.
    pub name: String,
    /// Its tokens.
    pub tokens: Vec<SampleToken>,
}

/// One token of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleToken {
    /// What it adds to the text.
    pub text: String,
    /// Its frequency band: 0 frequent, 1 medium, 2 rare, 3 very rare.
    pub band: u8,
    /// Its frequency class, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
    /// What its model gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl Continuation {
    /// VR: the share of very rare tokens.
    pub fn very_rare(&self) -> Option<f64> {
        let rare = self.tokens.iter().filter(|token| token.band == 3).count();
        (!self.tokens.is_empty()).then(|| rare as f64 / self.tokens.len() as f64)
    }
}
