//! Tables as aligned columns on a terminal.

use unicode_width::UnicodeWidthStr as _;

use super::{Align, Cell, Table};
use crate::printable::printable_line;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";
const GAP: &str = "  ";

/// The properties of the terminal that a table is printed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terminal {
    /// Whether strong cells can be set in bold; otherwise they are marked with an asterisk.
    pub colour: bool,
    /// The width in characters; `None` if lines may have any length, as in a file.
    pub width: Option<usize>,
}

impl Table {
    /// Aligned columns below a header line. A table wider than the terminal is printed in parts,
    /// one below the other, each with the first column; a text that is still too long is truncated.
    /// Control characters are replaced by printable ones.
    pub fn to_terminal(&self, terminal: Terminal) -> String {
        let widths = self.widths(terminal);
        let parts = parts(&widths, terminal.width);
        let parts = parts.iter().map(|columns| self.part(&widths, columns, terminal));
        parts.collect::<Vec<_>>().join("\n")
    }

    /// The table with only some of the columns.
    fn part(&self, widths: &[usize], columns: &[usize], terminal: Terminal) -> String {
        let headings = columns.iter().map(|at| (printable_line(&self.headings[*at]).into(), false));
        let mut out = self.line(widths, columns, headings);
        let rules = columns.iter().map(|at| "─".repeat(widths[*at])).collect::<Vec<_>>();
        out.push_str(&rules.join(GAP));
        out.push('\n');
        for row in &self.rows {
            let cells = columns.iter().map(|at| shown(&row.cells[*at], terminal.colour));
            out += &self.line(widths, columns, cells);
        }
        out
    }

    /// The width of each column. If the table does not fit, the first column is limited to half of
    /// the terminal, and every other column to the rest.
    fn widths(&self, terminal: Terminal) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.headings.iter().map(|text| printable_line(text).width()).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(&row.cells) {
                *widest = (*widest).max(shown(cell, terminal.colour).0.width());
            }
        }
        if let Some(width) = terminal.width.filter(|width| line_width(&widths) > *width)
            && let Some((first, others)) = widths.split_first_mut()
        {
            *first = (*first).min(width / 2).max(1);
            let left = width.saturating_sub(*first + GAP.len()).max(1);
            others.iter_mut().for_each(|other| *other = (*other).min(left));
        }
        widths
    }

    /// One line of cells, each with whether it is set in bold.
    fn line(
        &self,
        widths: &[usize],
        columns: &[usize],
        cells: impl Iterator<Item = (String, bool)>,
    ) -> String {
        let padded = cells.zip(columns).map(|((text, bold), &at)| {
            let text = cut(text, widths[at]);
            let space = " ".repeat(widths[at].saturating_sub(text.width()));
            let text = if bold { format!("{BOLD}{text}{PLAIN}") } else { text };
            match self.aligns[at] {
                Align::Left => text + &space,
                Align::Right => space + &text,
            }
        });
        let line = padded.collect::<Vec<_>>().join(GAP);
        format!("{}\n", line.trim_end())
    }
}

/// The width of a line of columns and the gaps between them.
fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// The columns of each part; the first column is in every part.
fn parts(widths: &[usize], width: Option<usize>) -> Vec<Vec<usize>> {
    let most = width.unwrap_or(usize::MAX);
    let mut parts = vec![Vec::from_iter((!widths.is_empty()).then_some(0))];
    let mut used = widths.first().copied().unwrap_or(0);
    for (at, column) in widths.iter().enumerate().skip(1) {
        used += GAP.len() + column;
        if used > most && parts.last().is_some_and(|part| part.len() > 1) {
            parts.push(vec![0]);
            used = widths[0] + GAP.len() + column;
        }
        parts.last_mut().expect("there is a part").push(at);
    }
    parts
}

/// Truncates a text to `width`, with an ellipsis.
fn cut(text: String, width: usize) -> String {
    if text.width() <= width {
        return text;
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        // The width of the whole text, as some characters change the width of the one before.
        if kept.width() >= width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// A cell's text on the terminal, and whether it is set in bold.
fn shown(cell: &Cell, colour: bool) -> (String, bool) {
    let text = printable_line(&cell.text);
    match (cell.strong, colour) {
        (true, true) => (text.into_owned(), true),
        (true, false) => (format!("*{text}"), false),
        (false, _) => (text.into_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn columns_line_up() {
        let lines = "\
model         KLD  note
──────────  ─────  ────────────────
MLE          1.51  50% off, \"plain\"
F²-Softmax  *0.62  a|b & c_d
";
        assert_eq!(example().to_terminal(Terminal::default()), lines);
    }

    #[test]
    fn bold_does_not_disturb_the_alignment() {
        let table = example().to_terminal(Terminal { colour: true, width: None });
        assert!(table.contains("F²-Softmax  \x1b[1m0.62\x1b[0m  a|b"), "{table}");
        assert!(table.contains("MLE         1.51  50%"), "{table}");
    }

    #[test]
    fn wide_characters_count_twice() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Left)]);
        table.row(["영화 x".into(), "1".into()]);
        table.row(["e\u{301}".into(), "2".into()]);
        let expected = "a       b\n──────  ─\n영화 x  1\ne\u{301}       2\n";
        assert_eq!(table.to_terminal(Terminal::default()), expected);
    }

    #[test]
    fn a_name_cannot_command_the_terminal_or_break_its_row() {
        let mut table = Table::new([("model", Align::Left), ("KLD", Align::Right)]);
        table.row(["\x1b[2J\nx".into(), Cell::strong("1")]);
        assert_eq!(
            table.to_terminal(Terminal::default()),
            "model   KLD\n──────  ───\n␛[2J␊x   *1\n"
        );
    }

    #[test]
    fn a_wide_table_comes_in_parts_and_no_line_is_longer_than_the_terminal() {
        let lines = "\
model         KLD
──────────  ─────
MLE          1.51
F²-Softmax  *0.62

model       note
──────────  ─────────────
MLE         50% off, \"pl…
F²-Softmax  a|b & c_d
";
        let narrow = |width| Terminal { colour: false, width: Some(width) };
        assert_eq!(example().to_terminal(narrow(25)), lines);
        let mut wide = example();
        wide.row(["영화 영화 영화".into(), "1".into(), "영화 영화 영화".into()]);
        wide.row(["❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}".into(), "2".into(), "x❤\u{fe0f}".repeat(5).into()]);
        for width in 5..60 {
            let table = wide.to_terminal(narrow(width));
            let longest = table.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap();
            assert!(longest <= width, "{width}: {longest}\n{table}");
        }
        assert_eq!(wide.to_terminal(narrow(60)), wide.to_terminal(Terminal::default()));
    }
}
