//! Tables, figures and one HTML page from scores.
//!
//! A [`Table`] is built once and written for a terminal, a page of Markdown or HTML, a paper in
//! LaTeX or a spreadsheet. A [`LineChart`] or a [`BarChart`] is drawn as SVG, alone or in a
//! [`Figure`] with others. [`ResultRecord`] is the result of an evaluation as
//! it is stored; [`metric_tables`] sets records side by side, and a [`Comparison`] plays them
//! against each other. [`Results`] are those of a whole experiment, and a [`Report`] shows them,
//! with the numbers the [`paper`] prints beside ours.

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
