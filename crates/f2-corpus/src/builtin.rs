//! The built-in text.

use bible_lib::{Bible, Translation};

/// A text for experiments without a download: the King James Bible, public domain.
///
/// Chapters are documents, verses are lines. The text is the one inside the `bible-lib` crate,
/// whose reader drops what follows a colon within a verse; about 650,000 words are left.
///
/// ```
/// let text = f2_corpus::builtin_text();
/// assert!(text.starts_with("In the beginning God created the heaven and the earth.\n"));
/// ```
pub fn builtin_text() -> String {
    let bible = Bible::new(Translation::KingJames).expect("the text is built in");
    let mut text = String::with_capacity(4 << 20);
    for book in bible.get_sorted_books() {
        let mut chapters: Vec<_> = bible.verses[&book].iter().collect();
        chapters.sort_by_key(|&(number, _)| number);
        for (_, verses) in chapters {
            let mut verses: Vec<_> = verses.iter().collect();
            verses.sort_by_key(|&(number, _)| number);
            for (_, verse) in verses {
                text.push_str(verse);
                text.push('\n');
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_chapter_is_a_document() {
        let text = super::builtin_text();
        assert_eq!(text.split("\n\n").filter(|chapter| !chapter.is_empty()).count(), 1189);
        assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 31_102);
    }
}
