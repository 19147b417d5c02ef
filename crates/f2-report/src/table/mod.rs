//! Tables, independent of the format they are written in.

mod csv;
mod html;
mod json;
mod latex;
mod markdown;
mod terminal;

pub use markdown::escape as escape_markdown;
pub use terminal::Terminal;

/// Which side of its column a cell's text keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names and texts.
    Left,
    /// Numbers.
    Right,
}

/// The text of one place in a table, and whether it stands out (the value closest to human).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Shown in bold.
    pub strong: bool,
}

impl Cell {
    /// A cell that stands out.
    pub fn strong(text: impl Into<String>) -> Self {
        Self { text: text.into(), strong: true }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), strong: false }
    }
}

/// Rows under named columns, independent of how they will be written.
///
/// ```
/// use f2_report::{Align, Cell, Table};
///
/// let mut table = Table::new([("model", Align::Left), ("KLD", Align::Right)]);
/// table.row(["MLE".into(), "1.51".into()]);
/// table.row(["F²".into(), Cell::strong("0.62")]);
/// assert_eq!(table.to_csv(), "model,KLD\nMLE,1.51\nF²,0.62\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    headings: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    cells: Vec<Cell>,
    /// Set in a lighter tone where the format has one.
    quiet: bool,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        let (headings, aligns) =
            columns.into_iter().map(|(heading, align)| (heading.into(), align)).unzip();
        Self { headings, aligns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When the row has not one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(cells, false);
    }

    /// Adds a row in a lighter tone, such as the paper's numbers.
    ///
    /// # Panics
    /// When the row has not one cell per column.
    pub fn quiet_row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(cells, true);
    }

    fn push(&mut self, cells: impl IntoIterator<Item = Cell>, quiet: bool) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has one cell per column");
        self.rows.push(Row { cells, quiet });
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The headings and every row's texts, from top to bottom.
    fn lines(&self) -> impl Iterator<Item = Vec<&str>> {
        let headings = self.headings.iter().map(String::as_str).collect();
        let rows =
            self.rows.iter().map(|row| row.cells.iter().map(|cell| cell.text.as_str()).collect());
        std::iter::once(headings).chain(rows)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table with what each format has to take care of: alignment, emphasis, separators.
    pub(crate) fn example() -> Table {
        let mut table =
            Table::new([("model", Align::Left), ("KLD", Align::Right), ("note", Align::Left)]);
        table.row(["MLE".into(), "1.51".into(), "50% off, \"plain\"".into()]);
        table.row(["F²-Softmax".into(), Cell::strong("0.62"), "a|b & c_d".into()]);
        table
    }

    #[test]
    #[should_panic(expected = "one cell per column")]
    fn a_row_of_the_wrong_length_is_a_mistake() {
        example().row(["alone".into()]);
    }
}
