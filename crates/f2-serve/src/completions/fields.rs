//! The fields of a request's JSON object, by type. A field that is `null` counts as missing.

use serde_json::{Map, Value};

use crate::http::error::Refusal;

/// The fields of a request.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// A field of any type.
    pub(crate) fn any(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A field converted by `read`; `expected` names the type for the error message.
    fn typed<T>(
        self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.any(name) else { return Ok(None) };
        let wrong =
            || Refusal::bad(name, format!("`{name}` must be {expected}, not {}", kind(value)));
        read(value).map(Some).ok_or_else(wrong)
    }

    pub(crate) fn text(self, name: &'static str) -> Result<Option<&'a str>, Refusal> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(crate) fn flag(self, name: &'static str) -> Result<bool, Refusal> {
        Ok(self.typed(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    pub(crate) fn number(self, name: &'static str) -> Result<Option<f64>, Refusal> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub(crate) fn integer(self, name: &'static str) -> Result<Option<i64>, Refusal> {
        self.typed(name, "a whole number", |value| {
            value.as_i64().or_else(|| value.as_u64().map(|large| large as i64))
        })
    }

    /// A whole number from 0 up.
    pub(crate) fn count(self, name: &'static str) -> Result<Option<usize>, Refusal> {
        self.typed(name, "a whole number from 0 up", |value| {
            value.as_u64().and_then(|count| usize::try_from(count).ok())
        })
    }

    /// A string or a list of strings.
    pub(crate) fn texts(self, name: &'static str) -> Result<Vec<String>, Refusal> {
        let read = |value: &Value| match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(list) => {
                list.iter().map(|text| text.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        Ok(self.typed(name, "a string or a list of strings", read)?.unwrap_or_default())
    }
}

/// The kind of a value, for error messages.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
