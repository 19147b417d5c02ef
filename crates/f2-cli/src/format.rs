//! How a verb that ends in tables prints them.

use clap::Args;
use f2_report::Table;

use crate::failure::Outcome;
use crate::output;

/// The formats of tables; aligned columns if none is asked for.
#[derive(Args, Clone, Copy)]
pub(crate) struct Format {
    /// Print Markdown.
    #[arg(long, group = "format")]
    markdown: bool,

    /// Print LaTeX (booktabs).
    #[arg(long, group = "format")]
    latex: bool,

    /// Print comma separated values.
    #[arg(long, group = "format")]
    csv: bool,

    /// Print JSON.
    #[arg(long, group = "format")]
    pub(crate) json: bool,
}

impl Format {
    /// The tables one below the other.
    fn tables(self, tables: &[Table]) -> String {
        let colour = output::takes_colour();
        let written = tables.iter().map(|table| match self {
            Self { markdown: true, .. } => table.to_markdown(),
            Self { latex: true, .. } => table.to_latex(),
            Self { csv: true, .. } => table.to_csv(),
            _ => table.to_terminal(colour),
        });
        written.collect::<Vec<_>>().join("\n")
    }

    /// Prints the tables and what belongs under them: comments in LaTeX, a list in Markdown, and
    /// lines on standard error beside values that a spreadsheet is to read.
    pub(crate) fn print(self, tables: &[Table], footnotes: &[String]) -> Outcome {
        let mark = match self {
            Self { markdown: true, .. } => "- ",
            Self { latex: true, .. } => "% ",
            _ => "",
        };
        if self.csv {
            footnotes.iter().for_each(|line| remark!("{line}"));
            return output::print(&self.tables(tables));
        }
        let lines: String = footnotes.iter().map(|line| format!("{mark}{line}\n")).collect();
        output::print(&format!("{}\n{lines}", self.tables(tables)))
    }
}
