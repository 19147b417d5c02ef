//! The contents of a folder of parts, according to folder names and records.

use std::fmt;

use super::Part;
use super::record::{Record, Step};

/// The step of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counted,
    Encoded,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Encoded => "encoded",
        }
    }
}

/// The content of one folder in the folder of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The learned tokenizer.
    Vocabulary,
    /// The result of a part's step.
    Part(Kind, Part),
}

impl Content {
    /// The folder's name: `vocabulary`, or as in `counted-00003-of-00064`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Vocabulary => "vocabulary".to_owned(),
            Self::Part(kind, Part { number, of }) => {
                format!("{}-{number:05}-of-{of:05}", kind.name())
            }
        }
    }

    /// The content of a folder of this name; `None` if no step creates such a folder.
    pub(super) fn named(name: &str) -> Option<Self> {
        let part = |kind: Kind| {
            let numbers = name.strip_prefix(kind.name())?.strip_prefix('-')?;
            Some(Self::Part(kind, numbers.replace("-of-", "/").parse().ok()?))
        };
        let all = [Some(Self::Vocabulary), part(Kind::Counted), part(Kind::Encoded)];
        all.into_iter().flatten().find(|content| content.name() == name)
    }

    /// The content of a folder with this record; `None` if the record names a part for a step
    /// without parts, or no part for a step with parts.
    fn recorded(record: &Record) -> Option<Self> {
        let part = record.part.map(|number| Part { number, of: record.job.parts });
        match (&record.step, part) {
            (Step::Learned { .. }, None) => Some(Self::Vocabulary),
            (Step::Counted { .. }, Some(part)) => Some(Self::Part(Kind::Counted, part)),
            (Step::Encoded { .. }, Some(part)) => Some(Self::Part(Kind::Encoded, part)),
            _ => None,
        }
    }

    /// Checks that a record belongs to this folder, in case a folder was renamed.
    pub(super) fn check(self, record: &Record) -> Result<(), String> {
        match Self::recorded(record) {
            Some(found) if found == self => Ok(()),
            Some(found) => Err(format!("it belongs to {found}, not to {self}")),
            None => Err("its step and its part contradict each other".to_owned()),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vocabulary => write!(out, "the vocabulary"),
            Self::Part(Kind::Counted, part) => write!(out, "the words of {part}"),
            Self::Part(Kind::Encoded, part) => write!(out, "the tokens of {part}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_known_by_name() {
        for name in ["counted-00003-of-00064", "encoded-00001-of-00001", "vocabulary"] {
            assert_eq!(Content::named(name).unwrap().name(), name);
        }
        for name in ["counted-3-of-64", "counted-00065-of-00064", "counted", "notes.txt"] {
            assert_eq!(Content::named(name), None, "{name}");
        }
    }
}
