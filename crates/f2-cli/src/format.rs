//! How a verb that ends in tables prints them.

use std::io::IsTerminal as _;

use clap::Args;
use f2_report::Table;

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
    pub(crate) fn tables(self, tables: &[Table]) -> String {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let written = tables.iter().map(|table| match self {
            Self { markdown: true, .. } => table.to_markdown(),
            Self { latex: true, .. } => table.to_latex(),
            Self { csv: true, .. } => table.to_csv(),
            _ => table.to_terminal(colour),
        });
        written.collect::<Vec<_>>().join("\n")
    }

    /// Prints what belongs under the tables: as comments in LaTeX, a list in Markdown, and on
    /// standard error beside values that a spreadsheet is to read.
    pub(crate) fn footnotes(self, lines: &[String]) {
        if !lines.is_empty() && !self.csv {
            println!();
        }
        for line in lines {
            match self {
                Self { markdown: true, .. } => println!("- {line}"),
                Self { latex: true, .. } => println!("% {line}"),
                Self { csv: true, .. } => eprintln!("{line}"),
                _ => println!("{line}"),
            }
        }
    }
}
