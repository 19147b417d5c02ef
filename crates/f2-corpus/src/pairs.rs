//! Pairs of texts: a source, and the target written for it.
//!
//! A pair is one document: the source's tokens, a separator, the target's tokens and the end of the
//! text. Between reader and encoder it is one string with the separator inside, which neither side
//! may contain.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::input::field_of;
use crate::tokenizer::END_OF_TEXT;

/// The default separator.
pub const SEPARATOR: &str = "<|separator|>";

/// How pairs are read, and the separator token between source and target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// The field that holds the source.
    pub source: String,
    /// The field that holds the target.
    pub target: String,
    /// The special token after the source.
    pub separator: String,
}

impl Default for Pairs {
    fn default() -> Self {
        let [source, target, separator] = ["source", "target", SEPARATOR].map(str::to_owned);
        Self { source, target, separator }
    }
}

impl Pairs {
    /// The document of a record, or the reason why the record is not a pair.
    pub(crate) fn document(&self, record: &Value) -> Result<String, String> {
        let [source, target] = [&self.source, &self.target].map(|field| {
            let text = field_of(record, field)?;
            self.check(field, text).map(|()| text)
        });
        Ok([source?, &self.separator, target?].concat())
    }

    fn check(&self, field: &str, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Err(format!(
                "the field \"{field}\" is empty; a pair has a source and a target"
            ));
        }
        let marks = [self.separator.as_str(), END_OF_TEXT];
        match marks.iter().find(|mark| text.contains(**mark)) {
            Some(mark) => {
                Err(format!("the field \"{field}\" contains {mark}, which marks where it ends"))
            }
            None => Ok(()),
        }
    }

    /// Source and target of a document.
    pub(crate) fn sides<'a>(&self, document: &'a str) -> [&'a str; 2] {
        let (source, target) = document.split_once(&self.separator).unwrap_or((document, ""));
        [source, target]
    }
}
