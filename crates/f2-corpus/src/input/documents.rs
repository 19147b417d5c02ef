//! Document boundaries in plain text.

use std::fmt;
use std::num::NonZeroUsize;

use super::chapters::is_chapter;

/// Where documents begin and end in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boundaries {
    /// By the file's name: articles in Wikitext's `.tokens`, blank lines elsewhere.
    #[default]
    Auto,
    /// Blank lines separate documents.
    BlankLines,
    /// Every line is a document.
    Lines,
    /// Every file is a document.
    Files,
    /// Documents start at a first-level heading, ` = Title = `, between blank lines.
    Articles,
    /// Documents start at a chapter heading, as in a novel.
    Chapters,
    /// Documents have this many lines each, not counting blank ones.
    Pieces(NonZeroUsize),
}

impl fmt::Display for Boundaries {
    /// The value of `--documents`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Auto => "auto",
            Self::BlankLines => "blank-lines",
            Self::Lines => "lines",
            Self::Files => "files",
            Self::Articles => "articles",
            Self::Chapters => "chapters",
            Self::Pieces(lines) => return write!(out, "{lines}"),
        })
    }
}

/// Gathers the lines of a text into documents.
///
/// Blank lines are dropped, so that a document consists of its lines of text, each ending with one
/// line break; only [`Boundaries::Files`] keeps them.
#[derive(Debug)]
pub(crate) struct Documents {
    boundaries: Boundaries,
    current: String,
    /// Lines in the current document.
    lines: usize,
    /// A line that is the heading of an article or a chapter, unless the next line rules it out.
    heading: Option<String>,
    after_blank: bool,
}

impl Documents {
    pub(crate) fn new(boundaries: Boundaries) -> Self {
        Self { boundaries, current: String::new(), lines: 0, heading: None, after_blank: true }
    }

    /// Adds the next line, without its line break; returns the document that it completes.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let blank = line.trim().is_empty();
        match self.boundaries {
            Boundaries::Auto | Boundaries::BlankLines if blank => self.take(),
            Boundaries::Lines | Boundaries::Pieces(_) if blank => None,
            Boundaries::Lines => {
                self.append(line);
                self.take()
            }
            Boundaries::Pieces(lines) => {
                self.append(line);
                if self.lines == lines.get() { self.take() } else { None }
            }
            // A title is a line of its own between blank lines.
            Boundaries::Articles => self.headed_line(line, blank, is_title, |_, blank| blank),
            // A chapter heading is followed by the chapter's name or text; in a table of contents,
            // by the next heading.
            Boundaries::Chapters => {
                self.headed_line(line, blank, is_chapter, |line, _| !is_chapter(line))
            }
            Boundaries::Auto | Boundaries::BlankLines | Boundaries::Files => {
                self.append(line);
                None
            }
        }
    }

    /// Adds a line of a text whose documents begin with headings. `opens` decides from the line
    /// after a possible heading whether it is one.
    fn headed_line(
        &mut self,
        line: &str,
        blank: bool,
        is_heading: fn(&str) -> bool,
        opens: impl FnOnce(&str, bool) -> bool,
    ) -> Option<String> {
        let heading = self.heading.take();
        let finished = match &heading {
            Some(_) if opens(line, blank) => self.take(),
            _ => None,
        };
        if let Some(heading) = heading {
            self.append(&heading);
        }
        if !blank {
            if self.after_blank && is_heading(line) {
                self.heading = Some(line.to_owned());
            } else {
                self.append(line);
            }
        }
        self.after_blank = blank;
        finished
    }

    /// Ends the text; returns its last document.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if let Some(heading) = self.heading.take() {
            self.append(&heading);
        }
        self.take()
    }

    fn append(&mut self, line: &str) {
        self.current.push_str(line);
        self.current.push('\n');
        self.lines += 1;
    }

    /// Bytes of the document being gathered.
    pub(crate) fn pending(&self) -> usize {
        self.current.len() + self.heading.as_ref().map_or(0, String::len)
    }

    fn take(&mut self) -> Option<String> {
        self.lines = 0;
        let document = std::mem::take(&mut self.current);
        (!document.trim().is_empty()).then_some(document)
    }
}

/// A first-level heading: ` = Robert Boulter = `, not ` = = Career = = `.
fn is_title(line: &str) -> bool {
    let inner = line.trim().strip_prefix("= ").and_then(|rest| rest.strip_suffix(" ="));
    inner.is_some_and(|title| !title.starts_with("= ") && !title.ends_with(" ="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(boundaries: Boundaries, text: &str) -> Vec<String> {
        let mut documents = Documents::new(boundaries);
        let mut found: Vec<String> = text.lines().filter_map(|line| documents.line(line)).collect();
        found.extend(documents.finish());
        found
    }

    #[test]
    fn blank_lines_separate() {
        assert_eq!(cut(Boundaries::BlankLines, "\n\na\nb\n \t\n\nc"), ["a\nb\n", "c\n"]);
    }

    #[test]
    fn every_line() {
        assert_eq!(cut(Boundaries::Lines, "a\n\n b \n"), ["a\n", " b \n"]);
    }

    #[test]
    fn a_whole_file_keeps_its_blank_lines() {
        assert_eq!(cut(Boundaries::Files, "a\n\nb\n"), ["a\n\nb\n"]);
        assert!(cut(Boundaries::Files, "\n \n").is_empty());
    }

    #[test]
    fn articles_start_at_first_level_headings_between_blank_lines() {
        let text = " \n = One = \n \n text \n \n = = Section = = \n \n x \n = not one = \n y \n \n = Two = \n \n z \n";
        assert_eq!(
            cut(Boundaries::Articles, text),
            [" = One = \n text \n = = Section = = \n x \n = not one = \n y \n", " = Two = \n z \n"]
        );
    }

    #[test]
    fn pieces_have_their_number_of_lines() {
        let pieces = Boundaries::Pieces(NonZeroUsize::new(2).unwrap());
        assert_eq!(cut(pieces, "a\n\nb\nc\n\n\nd\ne"), ["a\nb\n", "c\nd\n", "e\n"]);
    }

    #[test]
    fn a_novel_is_cut_at_its_chapters_and_not_at_its_contents() {
        let novel = "A Novel\n\nContents\n\nCHAPTER I. Rain\nCHAPTER II. Sun\n\n\
                     CHAPTER I.\nRain\n\nIt rained.\n\nChapter and verse were quoted.\n\n\
                     CHAPTER II.\n\nIt shone.\n\nEpilogue\n\nIt ended.\n";
        assert_eq!(
            cut(Boundaries::Chapters, novel),
            [
                "A Novel\nContents\nCHAPTER I. Rain\nCHAPTER II. Sun\n",
                "CHAPTER I.\nRain\nIt rained.\nChapter and verse were quoted.\n",
                "CHAPTER II.\nIt shone.\n",
                "Epilogue\nIt ended.\n",
            ]
        );
    }

    #[test]
    fn a_heading_at_the_very_end_is_kept() {
        assert_eq!(cut(Boundaries::Articles, "a\n\n= Last ="), ["a\n= Last =\n"]);
    }
}
