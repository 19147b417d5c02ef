//! Links that save a table.

use std::fmt::Write as _;

use crate::markup::escape;

/// A download link for a text that is embedded in the page.
pub(super) fn link(file: &str, label: &str, kind: &str, text: &str) -> String {
    let file = escape(file);
    format!(
        "<a download=\"{file}\" href=\"data:{kind};charset=utf-8,{}\">{label}</a>",
        percent_encoded(text)
    )
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_end_the_link() {
        assert_eq!(percent_encoded("a\"b² \n"), "a%22b%C2%B2%20%0A");
    }
}
