//! Scores in, tables and figures out.
//!
//! A [`Table`] is built once and written for a terminal, a page of Markdown, a paper in LaTeX
//! or a spreadsheet. A [`LineChart`] or a [`BarChart`] is drawn as SVG, alone or in a [`Figure`]
//! with others.

mod plot;
mod table;

pub use plot::{Axis, BarChart, Direction, FIGURE_STYLE, Figure, LineChart, Series};
pub use table::{Align, Cell, Table};
