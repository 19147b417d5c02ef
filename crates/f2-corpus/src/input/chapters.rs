//! Chapter headings of novels.

/// Words for a chapter, in languages that put the number after the word.
const NAMES: &str = "chapter book part canto act kapitel chapitre capítulo capitulo capitolo \
                     hoofdstuk глава часть";
/// Headings without a number.
const ALONE: &str = "prologue epilogue introduction preface conclusion afterword";
/// Numbers as words.
const NUMBERS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen \
                       fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty \
                       first second third fourth fifth";
/// A longer line, in characters, is taken for a sentence that begins like a heading.
const LONGEST: usize = 80;

/// Whether a line is a heading: `CHAPTER IV. The Trial`, `Chapter 4`, `Prologue`, `XII.`, `제3장`.
pub(super) fn is_chapter(line: &str) -> bool {
    let line = line.trim();
    if line.chars().count() > LONGEST {
        return false;
    }
    let (name, rest) = first_word(line);
    if listed(NAMES, name) {
        let (number, title) = first_word(rest.trim_start());
        return is_number(number) && may_be_title(title);
    }
    let alone = !rest.contains(char::is_alphanumeric);
    alone && (listed(ALONE, name) || is_roman(name))
        || is_numbered(line, '제', '장')
        || is_numbered(line, '第', '章')
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()))
}

fn listed(words: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    !word.is_empty() && words.split(' ').any(|each| each == word)
}

/// `4`, `IV` or `four`.
fn is_number(word: &str) -> bool {
    let digits = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    digits || is_roman(word) || listed(NUMBERS, word)
}

fn is_roman(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "IVXLC".contains(c))
}

/// Whether the text after a chapter number may be a title, not the rest of a sentence.
fn may_be_title(text: &str) -> bool {
    let first = text.chars().find(|c| !c.is_whitespace());
    first.is_none_or(|c| !c.is_lowercase() && c != ',')
}

/// Whether a line begins with a number between two characters.
fn is_numbered(line: &str, before: char, after: char) -> bool {
    let number = line.strip_prefix(before).and_then(|rest| rest.split_once(after));
    number.is_some_and(|(number, _)| {
        let digit = |c: char| c.is_numeric() || "一二三四五六七八九十百千零〇".contains(c);
        let number = number.trim();
        !number.is_empty() && number.chars().all(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_distinguished_from_sentences() {
        for heading in [
            "CHAPTER I.",
            "CHAPTER 1. Loomings.",
            " Chapter 4 The Trial ",
            "Chapter Twenty-One",
            "BOOK IV: THE END",
            "Kapitel 3",
            "Глава 2",
            "XII.",
            "Prologue",
            "제12장 바다",
            "第十二章 海",
        ] {
            assert!(is_chapter(heading), "{heading}");
        }
        for line in [
            "",
            "Chapter and verse were quoted.",
            "Part one of the plan was simple.",
            "Part one, she said, was simple.",
            "I know.",
            "Acting on it, he left.",
            "第一次见面",
        ] {
            assert!(!is_chapter(line), "{line}");
        }
    }
}
