//! Tables, figures and one HTML page from scores.
//!
//! A [`Table`] is built once and written for the terminal, as Markdown, HTML, LaTeX, CSV or JSON. A
//! [`LineChart`] or [`BarChart`] is drawn as SVG, alone or with others in a [`Figure`]. A
//! [`ResultRecord`] is the stored result of an evaluation; [`metric_tables`] shows records side by
//! side, and a [`Comparison`] compares them pair by pair. [`Results`] are those of a whole
//! experiment; a [`Report`] shows them next to the numbers printed in the [`paper`].

mod comparison;
mod markup;
mod metrics_table;
mod page;
mod pairwise_table;
pub mod paper;
mod plot;
mod printable;
mod record;
pub mod report;
pub mod results;
mod table;

pub use comparison::{Comparison, ComparisonError, Pairing, Standing};
pub use metrics_table::{
    MetricTable, band_table, definitions, further_definitions, further_table, metric_tables,
    metric_tables_of,
};
pub use paper::PaperSet;
pub use plot::{Axis, BarChart, Direction, FIGURE_STYLE, Figure, LOOKS, LineChart, Series};
pub use printable::printable;
pub use record::{DifferenceRecord, HalfRecord, HumanRecord, IntervalRecord, ResultRecord};
pub use report::Report;
pub use results::Results;
pub use table::{Align, Cell, Table, Terminal, escape_markdown};
