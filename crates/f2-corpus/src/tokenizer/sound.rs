//! Malformed tokenizers: checks before the library parses them, and its panics as errors.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use serde_json::Value;

/// Tables are allocated for all ids up to the largest, so there must be few gaps: the largest id
/// must be below this multiple of the number of tokens, plus this constant.
const GAPS: (usize, usize) = (16, 1 << 16);

/// Checks that the largest id is plausible for the number of tokens.
pub(super) fn check_ids(largest: u64, tokens: usize) -> Result<(), String> {
    let (times, more) = GAPS;
    if largest < tokens.saturating_mul(times).saturating_add(more) as u64 {
        Ok(())
    } else {
        Err(format!("the id {largest} is far beyond the {tokens} tokens there are"))
    }
}

/// Checks the properties of a `tokenizer.json` without which the library panics.
pub(super) fn check(json: &Value) -> Result<(), String> {
    let vocabulary = &json["model"]["vocab"];
    let added = json["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
    let entries = vocabulary.as_object();
    let ids = entries.into_iter().flat_map(serde_json::Map::values);
    let largest = ids.chain(added.iter().map(|token| &token["id"])).filter_map(Value::as_u64).max();
    let tokens = entries.map_or(0, serde_json::Map::len)
        + vocabulary.as_array().map_or(0, Vec::len)
        + added.len();
    check_ids(largest.unwrap_or(0), tokens)?;
    let Some(merges) = json["model"]["merges"].as_array() else { return Ok(()) };
    let known: HashSet<&str> =
        entries.into_iter().flatten().map(|(token, _)| token.as_str()).collect();
    let prefix = json["model"]["continuing_subword_prefix"].as_str().unwrap_or_default();
    merges.iter().filter_map(pair).try_for_each(|(left, right)| {
        check_merge(left, right, prefix, |token| known.contains(token))
    })
}

/// The two sides of a merge: a list of two or, in older files, two words in one string.
fn pair(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::String(words) => words.split_once(' '),
        Value::Array(sides) => Some((sides.first()?.as_str()?, sides.get(1)?.as_str()?)),
        _ => None,
    }
}

/// Checks a merge: its two tokens and the merged one must exist, and the second must begin with the
/// prefix.
pub(super) fn check_merge(
    left: &str,
    right: &str,
    prefix: &str,
    known: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let Some(rest) = right.strip_prefix(prefix) else {
        return Err(format!("the merge of {left:?} and {right:?} lacks the prefix {prefix:?}"));
    };
    let merged = format!("{left}{rest}");
    match [left, right, &merged].into_iter().find(|token| !known(token)) {
        Some(token) => {
            Err(format!("the merge of {left:?} and {right:?} needs the token {token:?}"))
        }
        None => Ok(()),
    }
}

/// Calls the library and turns a panic, which some files cause, into an error.
pub(super) fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    thread_local! {
        static GUARDED: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !GUARDED.get() {
                loud(about);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it cannot be used: {}", words.unwrap_or("unknown reason")).into())
    })
}

#[cfg(test)]
mod tests {
    use super::super::Tokenizer;

    fn refused(model: &str) -> String {
        let json = format!(r#"{{"version":"1.0","added_tokens":[],"model":{model}}}"#);
        Tokenizer::from_json(json.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_the_library_panics_on_is_refused() {
        let vocabulary = r#""vocab":{"a":0,"b":1,"ab":2,"abc":3}"#;
        let longer = format!(r#"{{"type":"BPE",{vocabulary},"merges":[["abc","ab"]]}}"#);
        assert_eq!(refused(&longer), r#"the merge of "abc" and "ab" needs the token "abcab""#);
        let older = format!(r#"{{"type":"BPE",{vocabulary},"merges":["abc abc"]}}"#);
        assert!(refused(&older).contains("abcabc"));
        let prefix = format!(
            r#"{{"type":"BPE","continuing_subword_prefix":"a long one",{vocabulary},"merges":[["a","b"]]}}"#
        );
        assert!(refused(&prefix).contains(r#"lacks the prefix "a long one""#));
        let far = r#"{"type":"WordLevel","vocab":{"a":4294967295},"unk_token":"a"}"#;
        assert!(refused(far).contains("the id 4294967295 is far beyond the 1 tokens"));
    }

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let outcome: tokenizers::Result<()> = super::guarded(|| panic!("on purpose"));
        assert_eq!(outcome.unwrap_err().to_string(), "it cannot be used: on purpose");
    }
}
