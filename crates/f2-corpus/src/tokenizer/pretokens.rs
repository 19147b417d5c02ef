//! GPT-2's pre-tokenizer: cuts text into the pieces that BPE never merges across.
//!
//! The rule is the regular expression
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
//! Walking the characters by hand gives the same pieces about twenty times faster than a
//! backtracking engine; the tests compare the two.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Other,
    Letter,
    Number,
    Space,
}

/// The kind of every code point, from the Unicode tables that the regular expression uses.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let mut kinds = vec![Kind::Other; char::MAX as usize + 1];
    for (pattern, kind) in
        [(r"\p{L}", Kind::Letter), (r"\p{N}", Kind::Number), (r"\s", Kind::Space)]
    {
        let hir = regex_syntax::parse(pattern).expect("the three patterns are valid");
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            unreachable!("a Unicode class parses to a Unicode class");
        };
        for range in class.ranges() {
            kinds[range.start() as usize..=range.end() as usize].fill(kind);
        }
    }
    kinds
});

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The pieces of `text`, in order; their concatenation is `text`.
pub(crate) fn pretokens(text: &str) -> impl Iterator<Item = &str> {
    let kinds = KINDS.as_slice();
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(first_piece(rest, kinds));
        rest = after;
        Some(piece)
    })
}

/// Length in bytes of the piece that `text`, which is not empty, starts with.
fn first_piece(text: &str, kinds: &[Kind]) -> usize {
    if let Some(contraction) = contraction(text) {
        return contraction.len();
    }
    let mut kind = kind_at(text, 0, kinds).0;
    let mut start = 0;
    if text.starts_with(' ') {
        match kind_at(text, 1, kinds).0 {
            Some(next) if next != Kind::Space => (start, kind) = (1, Some(next)),
            _ => {}
        }
    }
    let end = run_end(text, start, kind, kinds);
    if kind == Some(Kind::Space) { white_space_piece(text, end) } else { end }
}

fn contraction(text: &str) -> Option<&'static str> {
    if !text.starts_with('\'') {
        return None;
    }
    CONTRACTIONS.into_iter().find(|contraction| text.starts_with(contraction))
}

/// White space before a word leaves its last character to the word, unless that is the only one.
fn white_space_piece(text: &str, end: usize) -> usize {
    let run = &text[..end];
    let last = run.chars().next_back().map_or(0, char::len_utf8);
    if end == text.len() || last == end { end } else { end - last }
}

/// Where the run of characters of one kind that begins at `start` ends.
fn run_end(text: &str, start: usize, kind: Option<Kind>, kinds: &[Kind]) -> usize {
    let mut end = start;
    loop {
        let (next, length) = kind_at(text, end, kinds);
        if next.is_none() || next != kind {
            return end;
        }
        end += length;
    }
}

/// Kind and length of the character at byte `at`, `None` at the end of the text.
fn kind_at(text: &str, at: usize, kinds: &[Kind]) -> (Option<Kind>, usize) {
    match text.as_bytes().get(at) {
        None => (None, 0),
        Some(&byte) if byte < 0x80 => (Some(kinds[byte as usize]), 1),
        Some(_) => {
            let character = text[at..].chars().next().expect("a character starts here");
            (Some(kinds[character as usize]), character.len_utf8())
        }
    }
}

/// Cuts a long text into pieces of at least `size` bytes that can be encoded separately.
///
/// A cut is made after a single line break between two characters that are not white space, where
/// the regular expression above always cuts.
pub(crate) fn independent_parts(text: &str, size: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > size
        && let Some(cut) = first_cut(rest, size)
    {
        let (part, after) = rest.split_at(cut);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn first_cut(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (from.max(1)..bytes.len() - 1).find_map(|at| {
        let lone = bytes[at] == b'\n' && bytes[at - 1].is_ascii_graphic();
        (lone && bytes[at + 1].is_ascii_graphic()).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    use super::*;

    /// The pre-tokens by the regular expression of the `tokenizers` crate.
    fn by_regular_expression(text: &str) -> Vec<&str> {
        let mut pretokenized = PreTokenizedString::from(text);
        ByteLevel::new(false, false, true).pre_tokenize(&mut pretokenized).unwrap();
        let splits = pretokenized.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(_, (start, end), _)| &text[start..end]).collect()
    }

    fn by_hand(text: &str) -> Vec<&str> {
        pretokens(text).collect()
    }

    #[test]
    fn words_keep_one_space_and_white_space_gives_it_up() {
        assert_eq!(
            by_hand("I'll  take\n\n 12 of'em!? "),
            ["I", "'ll", " ", " take", "\n\n", " 12", " of", "'", "em", "!?", " "]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn agrees_with_the_regular_expression_on_any_text(text in any::<String>()) {
            prop_assert_eq!(by_hand(&text), by_regular_expression(&text));
        }

        #[test]
        fn agrees_with_the_regular_expression_where_the_rules_meet(
            text in "[ \n\t\u{a0}a'stréven1²٣.,—한]{0,40}"
        ) {
            prop_assert_eq!(by_hand(&text), by_regular_expression(&text));
        }

        #[test]
        fn parts_encode_as_the_whole(text in "[ \nab.]{0,60}", size in 1_usize..20) {
            let parts = independent_parts(&text, size);
            prop_assert_eq!(parts.concat(), text.clone());
            let pieces: Vec<&str> = parts.into_iter().flat_map(pretokens).collect();
            prop_assert_eq!(pieces, by_hand(&text));
        }
    }
}
