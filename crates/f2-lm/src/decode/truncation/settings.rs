//! The settings of the truncation rules.

use std::fmt;

use super::{RULES, TruncationRule};
use crate::Error;

/// The settings of the truncation rules, each of which may be off.
///
/// ```
/// use f2_lm::decode::Truncations;
/// let truncations = Truncations::default().with_top_k(40).with_min_p(0.05);
/// assert_eq!(format!("{truncations:?}"), r#"{"top_k": 40.0, "min_p": 0.05}"#);
/// ```
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Truncations {
    /// A setting for each of [`RULES`]. Counts are whole numbers, which `f64` holds exactly.
    settings: [Option<f64>; RULES.len()],
}

impl Truncations {
    /// All rules, in the order of files.
    pub fn rules() -> &'static [TruncationRule] {
        RULES
    }

    /// All rules, in the order of help and messages: the best known first.
    pub fn rules_for_readers() -> impl Iterator<Item = &'static TruncationRule> {
        let known = |is: bool| RULES.iter().filter(move |rule| rule.is_well_known == is);
        known(true).chain(known(false))
    }

    /// The rule with this name in messages.
    pub fn rule_named(name: &str) -> Option<&'static TruncationRule> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// The names of all rules, for a message.
    pub(in crate::decode) fn names() -> String {
        let names: Vec<&str> = Self::rules_for_readers().map(|rule| rule.name).collect();
        names.join(", ")
    }

    /// The setting of a rule.
    pub fn get(&self, rule: &TruncationRule) -> Option<f64> {
        self.settings[place(rule)]
    }

    /// Sets a rule; `None` turns it off.
    #[must_use]
    pub fn with(mut self, rule: &TruncationRule, setting: impl Into<Option<f64>>) -> Self {
        self.settings[place(rule)] = setting.into();
        self
    }

    /// These settings, with those of `base` for rules that have none here.
    #[must_use]
    pub fn or(self, base: Self) -> Self {
        let mut settings = self.settings;
        for (setting, usual) in settings.iter_mut().zip(base.settings) {
            *setting = setting.or(usual);
        }
        Self { settings }
    }

    /// The rules that are set, in the order of files.
    pub(crate) fn set(&self) -> impl Iterator<Item = (&'static TruncationRule, f64)> {
        let settings = RULES.iter().zip(self.settings);
        settings.filter_map(|(rule, setting)| setting.map(|setting| (rule, setting)))
    }

    /// Checks the settings against the size of the vocabulary.
    pub(in crate::decode) fn check(&self, vocabulary: usize) -> Result<(), Error> {
        self.set().try_for_each(|(rule, setting)| rule.check(setting, vocabulary))
    }
}

/// The rules that are set, by their keys.
impl fmt::Debug for Truncations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_map()
            .entries(self.set().map(|(rule, setting)| (rule.key, setting)))
            .finish()
    }
}

fn place(rule: &TruncationRule) -> usize {
    let place = RULES.iter().position(|listed| listed.key == rule.key);
    place.expect("a rule is in the list")
}
