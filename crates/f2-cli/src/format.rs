//! The output formats of verbs that print tables.

use clap::Args;
use f2_report::{Table, escape_markdown, printable};

use crate::failure::Outcome;
use crate::output;

/// The formats of tables; aligned columns if none is requested.
#[derive(Args, Clone, Copy, Debug)]
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
    /// JSON instead of tables.
    pub(crate) fn json() -> Self {
        Self { markdown: false, latex: false, csv: false, json: true }
    }

    /// Prints the tables and their footnotes: as comments in LaTeX, as a list in Markdown, and on
    /// standard error with CSV, which a spreadsheet reads.
    pub(crate) fn print(self, tables: &[Table], footnotes: &[String]) -> Outcome {
        let joined = |write: &dyn Fn(&Table) -> String| {
            tables.iter().map(write).collect::<Vec<_>>().join("\n")
        };
        let under = |line: &dyn Fn(&str) -> String| -> String {
            footnotes.iter().map(|text| line(text) + "\n").collect()
        };
        match self {
            Self { csv: true, .. } => {
                footnotes.iter().for_each(|line| remark!("{line}"));
                output::print(&joined(&Table::to_csv))
            }
            Self { markdown: true, .. } => {
                let lines = under(&|line| format!("- {}", escape_markdown(line)));
                output::print(&format!("{}\n{lines}", joined(&Table::to_markdown)))
            }
            Self { latex: true, .. } => {
                // A comment ends with its line.
                let lines = under(&|line| format!("% {}", line.replace(char::is_control, " ")));
                output::print(&format!("{}\n{lines}", joined(&Table::to_latex)))
            }
            _ => {
                let terminal = output::terminal();
                let lines = under(&|line| printable(line).into_owned());
                let tables = joined(&|table| table.to_terminal(terminal));
                output::print_styled(&format!("{tables}\n{lines}"))
            }
        }
    }
}
