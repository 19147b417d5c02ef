//! Untrusted text on a terminal: names, paths and generated text must not contain control sequences
//! that move the cursor, change the title or set colours.

use std::borrow::Cow;

/// Replaces control characters by their Unicode control pictures, such as ␛. Line feeds and tabs
/// are kept.
///
/// ```
/// assert_eq!(f2_report::printable("\x1b[31mred\r\n"), "␛[31mred␍\n");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    shown(text, |character| character.is_control() && !matches!(character, '\n' | '\t'))
}

/// [`printable`] for text on one line, such as a cell of a table: line feeds and tabs are replaced
/// too.
pub(crate) fn printable_line(text: &str) -> Cow<'_, str> {
    shown(text, char::is_control)
}

fn shown(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let show = |character| if hidden(character) { picture(character) } else { character };
    Cow::Owned(text.chars().map(show).collect())
}

/// The control picture of a character. The C1 control characters, of which 0x9b is equivalent to
/// ESC [, have none.
fn picture(control: char) -> char {
    match u32::from(control) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '␡',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_is_shown_and_everything_else_stays() {
        let all: String = (0..=0xff).filter_map(char::from_u32).collect();
        let left = |text: &str| text.chars().filter(|c| c.is_control()).collect::<String>();
        assert_eq!(left(&printable(&all)), "\t\n");
        assert_eq!(left(&printable_line(&all)), "");
        assert_eq!(printable("\0\u{7f}\u{9b}"), "␀␡\u{fffd}");
        assert!(matches!(printable("näh 🐈\n"), Cow::Borrowed(_)));
    }
}
