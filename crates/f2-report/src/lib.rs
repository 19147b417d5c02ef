//! Scores in, tables and figures out.
//!
//! A [`Table`] is built once and written for a terminal, a page of Markdown, a paper in LaTeX
//! or a spreadsheet. A [`LineChart`] or a [`BarChart`] is drawn as SVG, alone or in a [`Figure`]
//! with others. [`ResultRecord`] is what an evaluation leaves on disk; [`metric_tables`] sets
//! records side by side, and a [`Comparison`] plays them against each other.

mod comparison;
mod metrics_table;
mod pairwise_table;
mod plot;
mod record;
mod table;

pub use comparison::{Comparison, ComparisonError, Pairing, Standing};
pub use metrics_table::{definitions, metric_tables};
pub use plot::{Axis, BarChart, Direction, FIGURE_STYLE, Figure, LineChart, Series};
pub use record::{BandShares, HumanRecord, IntervalRecord, ResultRecord};
pub use table::{Align, Cell, Table};
