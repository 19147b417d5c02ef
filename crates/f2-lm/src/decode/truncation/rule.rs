//! The description of a truncation rule. Flags, fields of requests, keys of files, checks and
//! messages are derived from it.

use f2_engine::TokenSampling;
use serde::Serialize;

use super::super::checks::{check_k, check_positive, check_share};
use super::Effect;
use crate::Error;

/// A rule that decides which tokens may be drawn.
///
/// Every field must be given: a rule that omits one does not compile.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TruncationRule {
    /// Its key in `decoding.toml`; with dashes it is the flag of `f2 generate`.
    pub key: &'static str,
    /// Its name in messages.
    pub name: &'static str,
    /// The kind of its setting.
    pub setting: TruncationSetting,
    /// The name of the flag's value in help.
    pub value_name: &'static str,
    /// The help of the flag.
    pub help: &'static str,
    /// The advice on a setting that is refused.
    pub advice: &'static str,
    /// Whether it is one of the best known, which help and messages name first.
    pub is_well_known: bool,
    /// The field of a request to `f2 serve`.
    pub field: &'static str,
    /// The values of that field that keep everything, as if it were left out.
    pub none: &'static [f64],
    /// The rule of `transformers`, if it has one.
    pub(crate) transformers: Option<Foreign>,
    /// Its effect on tokens.
    pub(super) effect: Effect,
    /// Adds the rule to the settings for a draw on the device; `None` if the host must draw.
    pub(super) on_device: fn(TokenSampling, f64) -> Option<TokenSampling>,
}

/// The kind of a rule's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncationSetting {
    /// A number of tokens, from 1 to the size of the vocabulary.
    Count,
    /// A share above 0 and up to 1.
    Share,
    /// A number above 0.
    Positive,
}

/// A rule in another program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    /// Its name there.
    pub(crate) name: &'static str,
    /// The setting that keeps everything, if the other program truncates by default.
    pub(crate) unset: Option<f64>,
}

/// A setting as it is written: a count has no decimal point.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Count(usize),
    Number(f64),
}

impl TruncationRule {
    /// The flag of `f2 generate`, without the leading dashes.
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// Checks a setting against the size of the vocabulary.
    pub(super) fn check(&self, setting: f64, vocabulary: usize) -> Result<(), Error> {
        match self.setting {
            TruncationSetting::Count => {
                check_k(self.name, Some(setting as usize), vocabulary, "tokens")
            }
            TruncationSetting::Share => check_share(self.name, setting),
            TruncationSetting::Positive => check_positive(self.name, setting),
        }
    }

    /// A setting as files hold it.
    pub(crate) fn written(&self, setting: f64) -> Written {
        match self.setting {
            TruncationSetting::Count => Written::Count(setting as usize),
            TruncationSetting::Share | TruncationSetting::Positive => Written::Number(setting),
        }
    }
}
