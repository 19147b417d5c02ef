//! Tables, independent of the output format.

mod csv;
mod html;
mod json;
mod latex;
mod markdown;
mod terminal;

pub use markdown::escape as escape_markdown;
pub use terminal::Terminal;

/// The text of a missing value.
const MISSING: &str = "–";

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For names and texts.
    Left,
    /// For numbers.
    Right,
}

/// A cell of a table: its text, and whether it is emphasised, as is the value closest to human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Shown in bold.
    pub strong: bool,
    /// The numbers behind the text, for machine-readable formats.
    pub numbers: Vec<CellNumber>,
}

/// A number behind a cell's text: a column of its own in CSV, a field in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellNumber {
    /// The suffix that its own column's heading adds to the heading; empty for the value itself.
    pub name: &'static str,
    /// The formatted number.
    pub number: String,
}

impl Cell {
    /// An emphasised cell.
    pub fn strong(text: impl Into<String>) -> Self {
        Self { text: text.into(), strong: true, numbers: Vec::new() }
    }

    /// Sets the numbers behind the text, each with a name; that of the value is empty.
    #[must_use]
    pub fn with_numbers(
        mut self,
        numbers: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let numbers = numbers.into_iter();
        self.numbers = numbers.map(|(name, number)| CellNumber { name, number }).collect();
        self
    }

    /// The number with this name. If there are no numbers, the text is the value.
    fn under(&self, name: &str) -> &str {
        if self.numbers.is_empty() {
            return if name.is_empty() { &self.text } else { MISSING };
        }
        let number = self.numbers.iter().find(|number| number.name == name);
        number.map_or(MISSING, |number| &number.number)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), strong: false, numbers: Vec::new() }
    }
}

/// Rows under named columns, independent of the output format.
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
    /// In a lighter colour, if the format supports it.
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
    /// If the row does not have one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(cells, false);
    }

    /// Adds a row in a lighter colour, such as the paper's numbers.
    ///
    /// # Panics
    /// If the row does not have one cell per column.
    pub fn quiet_row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(cells, true);
    }

    fn push(&mut self, cells: impl IntoIterator<Item = Cell>, quiet: bool) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has one cell per column");
        self.rows.push(Row { cells, quiet });
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns of machine-readable formats: one for each of the numbers of the cells, named
    /// after the heading.
    fn number_columns(&self) -> Vec<NumberColumn> {
        let columns = self.headings.iter().enumerate().flat_map(|(at, heading)| {
            let mut names: Vec<&'static str> = vec![""];
            for number in self.rows.iter().flat_map(|row| &row.cells[at].numbers) {
                if !names.contains(&number.name) {
                    names.push(number.name);
                }
            }
            names.into_iter().map(move |name| NumberColumn {
                at,
                name,
                heading: format!("{heading} {name}").trim_end().to_owned(),
            })
        });
        columns.collect()
    }
}

/// A column of a machine-readable format.
struct NumberColumn {
    /// The index of the table's column.
    at: usize,
    /// The name of the number in its cells.
    name: &'static str,
    heading: String,
}

impl NumberColumn {
    fn of<'a>(&self, row: &'a Row) -> &'a str {
        row.cells[self.at].under(self.name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table with what each format must handle: alignment, emphasis, separators.
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
