//! Figures as SVG, by a small writer of our own.
//!
//! A figure carries its own style sheet: it follows the reader's light or dark setting, tells
//! series apart by shape as well as by colours that colour-blind readers can tell apart, shows
//! the numbers in tooltips, describes itself to screen readers, and fits the width of a phone.
//! The same input gives the same bytes.

mod axis;
mod bar;
mod description;
mod element;
mod figure;
mod frame;
mod header;
mod line;
mod mark;
mod number;
mod scale;
mod series;
mod text;

pub use mark::LOOKS;

pub use axis::Axis;
pub use bar::{BarChart, Direction};
pub use figure::{FIGURE_STYLE, Figure};
pub use line::LineChart;
pub use series::Series;
