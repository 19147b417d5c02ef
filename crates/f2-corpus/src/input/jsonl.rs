//! Documents of JSON Lines files: a field of each record, or a pair of fields.

use serde_json::Value;

use super::input_file::InputFile;
use super::open::Opened;
use super::reader::Reading;
use super::text::Lines;
use crate::error::{Error, Result};
use crate::pairs::Pairs;

/// Documents of a JSON Lines file.
pub(crate) struct JsonLinesFile {
    lines: Lines,
    source: InputFile,
    field: String,
    pairs: Option<Pairs>,
    number: u64,
}

impl JsonLinesFile {
    pub(crate) fn new(source: &InputFile, reading: &Reading) -> Result<Self> {
        let lines = Lines::new(source, reading)?;
        let (field, pairs) = (reading.field.clone(), reading.pairs.clone());
        Ok(Self { lines, source: source.clone(), field, pairs, number: 0 })
    }

    pub(crate) fn next_document(&mut self) -> Result<Option<String>> {
        while let Some(line) = self.lines.next_line()? {
            self.number += 1;
            if line.trim().is_empty() {
                continue;
            }
            let found = record(line).and_then(|record| match &self.pairs {
                Some(pairs) => pairs.document(&record).map(Some),
                None => Ok(ended_by_break(field_of(&record, &self.field)?.to_owned())),
            });
            let (path, line) = (&self.source.path, self.number);
            let document = found.map_err(|reason| match self.pairs {
                Some(_) => Error::PairLine { path: path.clone(), line, reason },
                None => Error::JsonLine { path: path.clone(), line, reason },
            })?;
            if document.is_some() {
                return Ok(document);
            }
        }
        Ok(None)
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.lines.opened
    }
}

fn record(line: &str) -> std::result::Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("broken JSON: {error}"))
}

/// The string in a field of a record.
pub(crate) fn field_of<'a>(record: &'a Value, field: &str) -> std::result::Result<&'a str, String> {
    match record.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("the field \"{field}\" is not a string")),
        None => Err(match record {
            Value::Object(record) => {
                format!("there is no field \"{field}\"; {}", listed(record.keys()))
            }
            _ => "this is not an object".to_owned(),
        }),
    }
}

/// More field names than this are not listed.
const MOST_NAMES: usize = 20;

/// The fields of a record, for a message.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let names: Vec<String> = names.take(MOST_NAMES).map(|name| format!("{name:?}")).collect();
    match (names.len(), more) {
        (0, _) => "there are none".to_owned(),
        (_, 0) => format!("there are {}", names.join(", ")),
        (_, more) => format!("there are {} and {more} more", names.join(", ")),
    }
}

/// A record's text, ending with a line break as every document does; `None` if it is blank.
pub(crate) fn ended_by_break(mut text: String) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}
