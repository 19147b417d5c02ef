//! The tokenization of text into words for each of the scores.

/// White space as in Python's `str.split`: Unicode's plus four control characters.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The words between white space.
pub(super) fn between_spaces(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The tokenization of mteval-v13a, the usual one for BLEU: punctuation marks are split off, except
/// for dots and commas within numbers. Returns the words separated by white space.
pub(super) fn mteval_13a(text: &str) -> String {
    let text = text.trim_end_matches(is_space);
    let text = text.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    let entities = [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")];
    let text = entities.iter().fold(text, |text, (name, sign)| text.replace(name, sign));
    let mut spaced = vec![' '];
    for character in text.chars() {
        if is_cut_off(character) {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced.push(' ');
    let is_dot = |character: char| matches!(character, '.' | ',');
    let no_digit = |character: char| !character.is_ascii_digit();
    let spaced = neighbours(&spaced, no_digit, is_dot, |left, dot| vec![left, ' ', dot, ' ']);
    let spaced = neighbours(&spaced, is_dot, no_digit, |dot, right| vec![' ', dot, ' ', right]);
    let is_digit = |character: char| character.is_ascii_digit();
    let is_dash = |character: char| character == '-';
    let spaced = neighbours(&spaced, is_digit, is_dash, |left, dash| vec![left, ' ', dash, ' ']);
    spaced.into_iter().collect()
}

/// ASCII punctuation, except for the apostrophe, comma, dash and dot.
fn is_cut_off(character: char) -> bool {
    let signs = ['{'..='~', '['..='`', ' '..='&', '('..='+', ':'..='@', '/'..='/'];
    signs.iter().any(|signs| signs.contains(&character))
}

/// Replaces adjacent characters that match `first` and `second`, from left to right and without
/// overlap.
fn neighbours(
    text: &[char],
    first: impl Fn(char) -> bool,
    second: impl Fn(char) -> bool,
    replaced: impl Fn(char, char) -> Vec<char>,
) -> Vec<char> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 4);
    let mut left = text;
    while let [one, rest @ ..] = left {
        match rest {
            [other, rest @ ..] if first(*one) && second(*other) => {
                out.extend(replaced(*one, *other));
                left = rest;
            }
            _ => {
                out.push(*one);
                left = rest;
            }
        }
    }
    out
}

/// Words with one punctuation mark split off at the end, or else at the beginning.
pub(super) fn off_punctuation(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in between_spaces(text) {
        let first = word.chars().next().map_or(0, char::len_utf8);
        let last = word.chars().next_back().map_or(0, char::len_utf8);
        let end = word.len() - last;
        if first == word.len() {
            words.push(word);
        } else if word.ends_with(|sign: char| sign.is_ascii_punctuation()) {
            words.extend([&word[..end], &word[end..]]);
        } else if word.starts_with(|sign: char| sign.is_ascii_punctuation()) {
            words.extend([&word[..first], &word[first..]]);
        } else {
            words.push(word);
        }
    }
    words
}

/// ROUGE's words: runs of a–z and 0–9 after lower-casing; everything else separates words.
pub(super) fn alphanumeric(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_whole_and_signs_are_words() {
        let words =
            |text: &str| between_spaces(&mteval_13a(text)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words("It's 3.14, not 1,000-fold."),
            ["It's", "3.14", ",", "not", "1,000", "-", "fold", "."]
        );
        assert_eq!(words("a..b &lt;p&gt;"), ["a", ".", ".", "b", "<", "p", ">"]);
        assert_eq!(off_punctuation("(a) b, .. é"), ["(a", ")", "b", ",", ".", ".", "é"]);
        assert_eq!(alphanumeric("Don't—naïve 42ND\u{212a}"), ["don", "t", "na", "ve", "42ndk"]);
    }
}
