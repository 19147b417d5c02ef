//! The line of each value in a TOML text.

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A value in a TOML text, with its full key and line.
pub(crate) struct Leaf {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) line: usize,
}

pub(crate) fn leaves(text: &str) -> Result<Vec<Leaf>, toml::de::Error> {
    let spans = DeTable::parse(text)?;
    let values: Table = text.parse()?;
    let mut found = Vec::new();
    collect(text, "", spans.get_ref(), &values, &mut found);
    Ok(found)
}

fn collect(text: &str, section: &str, spans: &DeTable<'_>, values: &Table, found: &mut Vec<Leaf>) {
    for (name, span) in spans {
        let key = format!("{section}{}", name.get_ref());
        let value = &values[name.get_ref().as_ref()];
        match (span.get_ref(), value) {
            (DeValue::Table(spans), Value::Table(values)) if !values.is_empty() => {
                collect(text, &format!("{key}."), spans, values, found);
            }
            (DeValue::Table(_), _) => {}
            _ => found.push(Leaf { key, value: value.clone(), line: line_of(text, start(name)) }),
        }
    }
}

fn start<T>(spanned: &Spanned<T>) -> usize {
    spanned.span().start
}

pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}
