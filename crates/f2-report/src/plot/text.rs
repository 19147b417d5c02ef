//! Text width and line breaks.

/// The mean ratio of character width to font size, for common system fonts.
const MEAN_ASPECT: f64 = 0.54;

/// The approximate width of a text in pixels. East Asian characters are as wide as high.
pub(super) fn width(text: &str, font_size: f64) -> f64 {
    let aspect = |character: char| match character {
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' => 1.0,
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' => 0.32,
        'm' | 'w' | 'M' | 'W' => 0.85,
        _ => MEAN_ASPECT,
    };
    text.chars().map(aspect).sum::<f64>() * font_size
}

/// Breaks a text between words into lines that fit.
pub(super) fn wrap(text: &str, font_size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), font_size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_between_words_only() {
        assert_eq!(wrap("one two three", 10.0, 45.0), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 10.0, 5.0), ["unbreakable"]);
        assert!(wrap("", 10.0, 5.0).is_empty());
    }
}
