//! Scores in, tables and figures out.
//!
//! A [`Table`] is built once and written for a terminal, a page of Markdown, a paper in LaTeX
//! or a spreadsheet.

mod table;

pub use table::{Align, Cell, Table};
