//! Tables as aligned columns on a terminal.

use unicode_width::UnicodeWidthStr as _;

use super::{Align, Cell, Table};
use crate::printable::printable_line;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";
const GAP: &str = "  ";

impl Table {
    /// Aligned columns under a rule; strong cells in bold when `colour` is on, and marked with
    /// a star when it is off and they would be lost. Control characters are shown, not obeyed.
    pub fn to_terminal(&self, colour: bool) -> String {
        let widths = self.widths(colour);
        let headings = self.headings.iter().map(|text| (printable_line(text).into_owned(), false));
        let mut out = self.line(&widths, headings);
        out.push_str(&widths.iter().map(|&width| "─".repeat(width)).collect::<Vec<_>>().join(GAP));
        out.push('\n');
        for row in &self.rows {
            out += &self.line(&widths, row.cells.iter().map(|cell| shown(cell, colour)));
        }
        out
    }

    fn widths(&self, colour: bool) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.headings.iter().map(|text| printable_line(text).width()).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(&row.cells) {
                *widest = (*widest).max(shown(cell, colour).0.width());
            }
        }
        widths
    }

    /// One line of cells, each a text and whether it is set in bold.
    fn line(&self, widths: &[usize], cells: impl Iterator<Item = (String, bool)>) -> String {
        let padded = cells.zip(widths).zip(&self.aligns).map(|(((text, bold), &column), align)| {
            let space = " ".repeat(column - text.width());
            let text = if bold { format!("{BOLD}{text}{PLAIN}") } else { text };
            match align {
                Align::Left => text + &space,
                Align::Right => space + &text,
            }
        });
        let line = padded.collect::<Vec<_>>().join(GAP);
        format!("{}\n", line.trim_end())
    }
}

/// A cell's text on this terminal, and whether it is set in bold.
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
        assert_eq!(example().to_terminal(false), lines);
    }

    #[test]
    fn bold_does_not_disturb_the_alignment() {
        let table = example().to_terminal(true);
        assert!(table.contains("F²-Softmax  \x1b[1m0.62\x1b[0m  a|b"), "{table}");
        assert!(table.contains("MLE         1.51  50%"), "{table}");
    }

    #[test]
    fn wide_characters_count_twice() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Left)]);
        table.row(["영화 x".into(), "1".into()]);
        table.row(["e\u{301}".into(), "2".into()]);
        let expected = "a       b\n──────  ─\n영화 x  1\ne\u{301}       2\n";
        assert_eq!(table.to_terminal(false), expected);
    }

    #[test]
    fn a_name_cannot_command_the_terminal_or_break_its_row() {
        let mut table = Table::new([("model", Align::Left), ("KLD", Align::Right)]);
        table.row(["\x1b[2J\nx".into(), Cell::strong("1")]);
        assert_eq!(table.to_terminal(false), "model   KLD\n──────  ───\n␛[2J␊x   *1\n");
    }
}
